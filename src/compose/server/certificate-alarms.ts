import type { Alarms } from '../../operator-kit/alarms/alarms.ts';
import type { AlarmKey } from '../../operator-kit/alarms/model.ts';
import type { KnownCertificate } from '../../ports/certificates.ts';
import type { CertificateListener } from '../../runtime/certificates.ts';

/**
 * Raises alarms for certificates that end soon. The API's alarm belongs to this server, that of a driver or a provider to
 * all servers.
 */
export function certificateAlarms(
  alarms: Pick<Alarms<'certificate_ending'>, 'raise' | 'end' | 'server'>,
): CertificateListener {
  const keyOf = ({ use, name }: KnownCertificate): AlarmKey<'certificate_ending'> => ({
    kind: 'certificate_ending',
    subject: use === 'api' ? alarms.server : `${name}/${use}`,
  });
  return {
    endsSoon: (certificate, text) =>
      // `Certificates` has already logged it.
      alarms.raise(
        { ...keyOf(certificate), platform: certificate.use === 'api' ? null : certificate.name, text },
        { error: () => undefined },
      ),
    isRenewed: (certificate) => alarms.end(keyOf(certificate)),
  };
}
