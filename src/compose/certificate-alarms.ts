import type { Alarms } from '../orchestrator/alarms/alarms.ts';
import type { AlarmKey } from '../orchestrator/model/alarm.ts';
import type { KnownCertificate } from '../ports/certificates.ts';
import type { CertificateListener } from '../runtime/certificates.ts';

/** The certificates that end soon, as alarms: the API's is this server's own, a driver's that of all servers. */
export function certificateAlarms(alarms: Alarms): CertificateListener {
  const keyOf = ({ use, name }: KnownCertificate): AlarmKey => ({
    kind: 'certificate_ending',
    subject: use === 'api' ? alarms.server : `${name}/${use}`,
  });
  return {
    endsSoon: (certificate, text) =>
      // It has logged it.
      alarms.raise(
        { ...keyOf(certificate), platform: certificate.use === 'api' ? null : certificate.name, text },
        { error: () => undefined },
      ),
    isRenewed: (certificate) => alarms.end(keyOf(certificate)),
  };
}
