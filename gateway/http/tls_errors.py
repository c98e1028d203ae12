"""The causes of TLS failures: their metric labels and messages."""

import ssl
from typing import Final


class TlsError(ConnectionError):
    """TLS failed; `reason` is a key of `REASONS`, and the message does not name the peer."""

    def __init__(self, reason: str, text: str = "") -> None:
        super().__init__(text or REASONS[reason])
        self.reason = reason


REASONS: Final = {
    "expired": "its certificate has expired",
    "not_yet_valid": "its certificate is not valid yet",
    "wrong_name": "its certificate is for another name",
    "self_signed": "its certificate is self-signed, and no configured authority",
    "unknown_authority": "no trusted authority has signed its certificate",
    "revoked": "its certificate is revoked",
    "bad_certificate": "its certificate cannot be used",
    "no_certificate": "it presented no certificate, and one is required",
    "certificate_required": "it requires a client certificate",
    "certificate_refused": "it refused the gateway's certificate",
    "protocol": "no TLS version is common to both sides",
    "cipher": "no cipher suite is common to both sides",
    "not_tls": "it does not speak TLS",
    "slow": "the TLS handshake took too long",
    "closed": "it closed the connection during the TLS handshake",
    "crowded": "too many TLS handshakes were under way",
    "other": "TLS failed",
}
"""The causes of TLS failures by label. Each text is the end of a sentence about the peer."""

# X509_verify_cert_error (OpenSSL, x509_vfy.h).
_VERIFY_CODES: Final = {
    9: "not_yet_valid",
    10: "expired",
    18: "self_signed",
    19: "unknown_authority",
    20: "unknown_authority",
    21: "unknown_authority",
    23: "revoked",
    62: "wrong_name",
    64: "wrong_name",
}
# OpenSSL's reason codes (ssl.h, sslerr.h). The peer sends an alert to report an error.
_OPENSSL: Final = {
    "HTTP_REQUEST": "not_tls",
    "HTTPS_PROXY_REQUEST": "not_tls",
    "WRONG_VERSION_NUMBER": "not_tls",
    "RECORD_LAYER_FAILURE": "not_tls",
    "PACKET_LENGTH_TOO_LONG": "not_tls",
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "no_certificate",
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": "certificate_required",
    "UNSUPPORTED_PROTOCOL": "protocol",
    "NO_PROTOCOLS_AVAILABLE": "protocol",
    "TLSV1_ALERT_PROTOCOL_VERSION": "protocol",
    "NO_SHARED_CIPHER": "cipher",
    "NO_CIPHERS_AVAILABLE": "cipher",
    "SSLV3_ALERT_HANDSHAKE_FAILURE": "cipher",
    "SSLV3_ALERT_BAD_CERTIFICATE": "certificate_refused",
    "SSLV3_ALERT_UNSUPPORTED_CERTIFICATE": "certificate_refused",
    "SSLV3_ALERT_CERTIFICATE_REVOKED": "certificate_refused",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "certificate_refused",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": "certificate_refused",
    "TLSV1_ALERT_UNKNOWN_CA": "certificate_refused",
}


def tls_error(error: ssl.SSLError) -> TlsError:
    if isinstance(error, ssl.SSLCertVerificationError):
        reason = _VERIFY_CODES.get(error.verify_code, "bad_certificate")
        text = REASONS[reason]
        return TlsError(reason, f"{text}: {error.verify_message}" if reason[0] == "b" else text)
    known = error.reason or ""
    reason = _OPENSSL.get(known, "other")
    if known == "SSLV3_ALERT_HANDSHAKE_FAILURE":  # TLS 1.2 has no other alert for both
        text = "it refused the handshake: no common cipher suite, or no client certificate"
        return TlsError(reason, text)
    detail = known.lower().replace("_", " ")
    return TlsError(reason, f"{REASONS[reason]}: {detail}" if reason == "other" else "")
