import type { InstanceRecord } from '../../../src/orchestrator/model/records.ts';
import { hold } from '../../kernel/violation.ts';
import { SOUND_PLATFORM } from '../catalog.ts';

// I32: of two platforms, trouble on one ends, freezes and refuses nothing on the other. Checked where the servers and
// their store are sound: then nothing else could.

/** I32: nothing on the sound platform ends but by its user. */
export function nothingEndsThere({ id, platform, status, error }: InstanceRecord): void {
  const hasEnded = platform === SOUND_PLATFORM && (status === 'ERROR' || status === 'OFFLINE');
  hold('I32', !hasEnded, () => `${id} is ${status} (${error}), and its platform is sound`, [id]);
}

const PASSING = new Set(['PROVISIONING', 'STOPPING', 'DESTROYING']);
/** Longer than a boot, a proof of absence and all of their retries take there. */
const LONGEST_MS = 150_000;

/** I32: what is begun on the sound platform comes to its end. `since`: when its row was written last. */
export function nothingStandsStill(
  { id, platform, status }: Pick<InstanceRecord, 'id' | 'platform' | 'status'>,
  since: number,
  now: number,
): void {
  const isStill = platform === SOUND_PLATFORM && PASSING.has(status) && now - since > LONGEST_MS;
  hold('I32', !isStill, () => `${id} is ${status} for ${now - since} ms, and its platform is sound`, [id]);
}

/** I32: an offer of the sound platform is sold wherever it has a free unit. */
export function isSoldThere(region: string, freeUnits: number, offered: readonly string[]): void {
  const isRefused = freeUnits > 0 && !offered.includes(region);
  hold('I32', !isRefused, () => `cpu in ${region} has ${freeUnits} free units, and is not offered`);
}
