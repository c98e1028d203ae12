"""What the rules have for operators: who may ask the admin port."""
