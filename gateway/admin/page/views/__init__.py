"""Views: what each part of the page shows, collected from reports for its template."""
