import { type KeyObject, sign, verify } from 'node:crypto';
import { CertificateError, isBase64, keyOf, publicKeyText, readPublicKey } from '../../certificate/sign.ts';
import { type Certificate, certificateDigest } from './certificate.ts';

/** Signs a certificate with an Ed25519 private key. */
export function signCertificate(certificate: Certificate, key: KeyObject): Certificate {
  const value = sign(null, messageOf(certificate), key).toString('base64');
  const public_key = publicKeyText(key);
  return { ...certificate, signature: { algorithm: 'Ed25519', public_key, value } };
}

/** Checks the signature by a public key in PEM. @throws {CertificateError} */
export function verifyCertificate(certificate: Certificate, publicKeyPem: string): void {
  const { signature } = certificate;
  if (signature === undefined) throw new CertificateError('it is not signed');
  const trusted = readPublicKey(publicKeyPem);
  if (signature.public_key !== trusted) throw new CertificateError('it was signed with another key');
  if (!isBase64(signature.value)) throw new CertificateError('its signature is not base64');
  if (!verify(null, messageOf(certificate), keyOf(trusted), Buffer.from(signature.value, 'base64')))
    throw new CertificateError('it is not what was signed');
}

function messageOf(certificate: Certificate): Buffer {
  return Buffer.from(`berth-conformance-monitor/1\n${certificateDigest(certificate)}`);
}
