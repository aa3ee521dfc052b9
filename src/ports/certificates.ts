/**
 * `api`: of Berth's own listener · `provider`: shown by a provider · `driver`: shown by a driver behind HTTPS ·
 * `incus_server`: the pinned certificate of Incus · `incus_client`: the certificate that Berth shows to Incus.
 */
export type CertificateUse = 'api' | 'admin' | 'provider' | 'driver' | 'incus_server' | 'incus_client';

/** A certificate that this process uses, or that its peer showed last. */
export interface KnownCertificate {
  use: CertificateUse;
  /** The provider or the platform; `api` for the API, `admin` for the admin listener. */
  name: string;
  /** In milliseconds since the epoch. */
  endsAt: number;
}

/**
 * `pem`: the file with its chain · `validTo`: end of the certificate shown · `ended`: a peer was refused as expired.
 */
export type SeenCertificate = { pem: string } | { validTo: string } | 'ended';

/** Called whenever a certificate is read or shown. */
export type CertificateSeen = (seen: SeenCertificate) => void;

/** Reports the peer's certificate of a new connection, also when the connection failed because it has expired. */
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
