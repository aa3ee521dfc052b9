import { type TimelineEntry, timelineView } from '../../../operator-kit/alarms/timeline.ts';
import type { Clock } from '../../../ports/clock.ts';
import { alarmKindFacts } from '../../model/alarm.ts';
import type { HistoryEvent, RequestedBy } from '../../model/history.ts';
import type { Store } from '../../model/store.ts';

interface Deps {
  store: Pick<Store, 'read'>;
  clock: Pick<Clock, 'now'>;
}

/** `berth timeline`. Without an instance, it has only the changes of status of instances. */
export const timeline = timelineView<Deps>({
  kinds: alarmKindFacts,
  words: { instance: 'instance', host: 'host', provider: 'platform', account: 'account' },
  resources: ({ store: { read } }, { instance, host, provider, account }) => [
    async (range) => {
      const of = { instanceId: instance, host, platform: provider, accountId: account };
      return (await read.history.between({ ...range, ...of })).map(toEntry);
    },
  ],
  placesOf: async ({ store: { read } }, subjects) => {
    const found = await read.instances.byIds(subjects.filter((one) => one.startsWith('inst-')));
    return new Map(
      found.map(({ id, host, platform, accountId }) => [id, [host ?? '', platform, accountId]] as const),
    );
  },
});

function toEntry(event: HistoryEvent): TimelineEntry {
  const { at, instanceId, cause, attempt, fromStatus, toStatus, detail, next } = event;
  const tried = attempt === null ? [] : [`attempt ${attempt}${next === null ? '' : `, next: ${next}`}`];
  return {
    at,
    source: 'resource',
    event: toStatus === null || toStatus === fromStatus ? cause : `${cause}: ${fromStatus} → ${toStatus}`,
    subject: instanceId,
    by: nameOf(event.by),
    text: [...(detail === null ? [] : [detail]), ...tried].join('; '),
    about: [],
  };
}

function nameOf(by: RequestedBy | null): string | null {
  return by?.operator ?? by?.account ?? null;
}
