/**
 * `api`: Berth's own listener · `provider`: what a provider shows · `driver`: what a driver behind HTTPS shows ·
 * `incus_server`, `incus_client`: the pinned one of Incus, and the one that Berth shows to it.
 */
export type CertificateUse = 'api' | 'provider' | 'driver' | 'incus_server' | 'incus_client';

/** A certificate that this process uses, or was shown last. */
export interface KnownCertificate {
  use: CertificateUse;
  /** The provider or the platform; of the API: `api`. */
  name: string;
  /** In milliseconds since the epoch. */
  endsAt: number;
}

/** `pem`: the file, with its chain · `validTo`: of the one that was shown · `ended`: one was refused since it has ended. */
export type SeenCertificate = { pem: string } | { validTo: string } | 'ended';

/** Hears of a certificate whenever it is read or shown. */
export type CertificateSeen = (seen: SeenCertificate) => void;

/** Reports the certificate that the other side of a new connection has shown, or for which it was refused. */
export function reportPeer(
  seen: CertificateSeen,
  error: Error | null,
  socket: object | null | undefined,
): void {
  if (error !== null && 'code' in error && error.code === 'CERT_HAS_EXPIRED') seen('ended');
  if (socket === null || socket === undefined || !isTls(socket)) return;
  const { validTo } = socket.getPeerX509Certificate() ?? {};
  if (validTo !== undefined) seen({ validTo });
}

function isTls(socket: object): socket is { getPeerX509Certificate(): { validTo: string } | undefined } {
  return 'getPeerX509Certificate' in socket;
}
