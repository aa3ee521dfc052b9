import type { AlarmRecord } from '../../operator-kit/alarms/model.ts';
import type { Clock } from '../../ports/clock.ts';
import { concerns, isActive, type Placed } from '../model/cordon.ts';
import type { Store } from '../model/store.ts';

/** The alarms that a maintenance in force explains: about its platform or host, or about an instance there. */
export async function findSilenced(
  { store: { read }, clock }: { store: Pick<Store, 'read'>; clock: Pick<Clock, 'now'> },
  alarms: readonly AlarmRecord[],
): Promise<ReadonlySet<AlarmRecord>> {
  const now = clock.now();
  const windows = (await read.cordons.list()).filter((one) => one.isMaintenance && isActive(one, now));
  if (windows.length === 0) return new Set();
  const instances = await read.instances.byIds(alarms.map(({ subject }) => subject));
  const placeOf = new Map(
    instances.map(
      ({ id, region, offerId: offer, platform, host }) => [id, { region, offer, platform, host }] as const,
    ),
  );
  return new Set(
    alarms.filter((alarm) => {
      const { platform, subject } = alarm;
      // The subject of an alarm about a host or an offer is PLATFORM/NAME.
      const [, name = ''] = subject.split('/');
      const placed: Placed | undefined =
        placeOf.get(subject) ??
        (platform === null ? undefined : { region: '', offer: name, platform, host: name });
      return placed !== undefined && windows.some((window) => concerns(window, placed));
    }),
  );
}
