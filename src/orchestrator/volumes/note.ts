import type { Note } from '../ports/platform-driver.ts';
import type { VolumeRecord } from './volume-record.ts';

/** What the platform keeps of a volume for us: all of its row that cannot be observed. */
export function toNote(installationId: string, record: VolumeRecord): Note {
  const { id, accountId, name, region, type, sizeGb, priceMicroUsdPerHour, createdAt } = record;
  return JSON.stringify({
    ...{ installation: installationId, kind: 'volume', id, accountId, name, region, type, sizeGb },
    ...{ priceMicroUsdPerHour, createdAt },
  });
}
