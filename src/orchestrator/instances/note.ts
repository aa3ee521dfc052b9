import type { Note } from '../ports/platform-driver.ts';
import type { InstanceRecord } from './instance-record.ts';

/** What the platform keeps of an instance for us: all of its row that cannot be observed, and no secret. */
export function toNote(installationId: string, record: InstanceRecord): Note {
  const { id, accountId, name, offerId, region, spec, priceMicroUsdPerHour, createdAt } = record;
  const { cloudInit: _secret, ...kept } = spec;
  return JSON.stringify({
    ...{ installation: installationId, kind: 'instance', id, accountId, name, offerId, region },
    ...{ spec: kept, priceMicroUsdPerHour, createdAt },
  });
}
