import type { Problem, Shown } from '../evidence/finding.ts';
import type { InstanceTimeline } from '../evidence/instances.ts';
import { printable } from '../text/printable.ts';
import { duration } from '../text/wording.ts';
import { statusOf } from '../transcript/exchange.ts';

/** What was got, for a reader: with the status that the instance had read, where the answer itself does not show it. */
export function actualWithStatus({ actual, shown }: Problem, timelines: readonly InstanceTimeline[]): string {
  if (shown === undefined || showsStatus(shown)) return actual;
  const last = timelines
    .find(({ id }) => isAbout(shown, id))
    ?.observations.findLast(({ source, exchange }) => source !== 'list' && exchange.endedAt <= shown.sentAt);
  if (last === undefined || actual.includes(last.status)) return actual;
  const ageMs = shown.sentAt - last.exchange.endedAt;
  return `${actual}; the instance had read ${printable(last.status, 60)} ${duration(ageMs)} before`;
}

/** A read shows the status, or that there is none; a 404 says that it is gone. */
function showsStatus(shown: Shown): boolean {
  return shown.kind === 'exchange' && shown.request.method === 'GET' && statusOf(shown) !== 404;
}

/** Whether a login or a request is about the instance with this id. */
export function isAbout(shown: Shown, id: string): boolean {
  if (shown.kind === 'ssh') return shown.instanceId === id;
  const [, first, second] = shown.request.path.split(/[/?]/);
  return first === 'instances' && second === encodeURIComponent(id);
}
