import type { Alarms } from '../../orchestrator/alarms/alarms.ts';
import type { AlarmKey } from '../../orchestrator/model/alarm.ts';
import type { KnownCertificate } from '../../ports/certificates.ts';
import type { CertificateListener } from '../../runtime/certificates.ts';

/** Raises alarms for certificates that end soon. The API's alarm belongs to this server, a driver's to all servers. */
export function certificateAlarms(alarms: Alarms): CertificateListener {
  const keyOf = ({ use, name }: KnownCertificate): AlarmKey => ({
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
