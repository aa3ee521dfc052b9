import { anyTimestampSchema } from '../../contract/values.ts';
import type { TimelineFilter, TimelinePage, TimelineRow } from '../alarms/timeline.ts';
import { afterSchema } from '../views/values.ts';
import type { Page } from './deps.ts';
import {
  badge,
  type Column,
  clockTime,
  given,
  html,
  live,
  named,
  type Tone,
  table,
  withQuery,
} from './parts.ts';

const PAGE = 100;
const PATH = '/console/timeline';
const FILTERS = ['instance', 'host', 'provider', 'account'] as const;
const TONES: Readonly<Record<TimelineRow['source'], Tone>> = {
  alarm: 'bad',
  operator: 'busy',
  server: 'wait',
  resource: 'none',
};

interface Query extends TimelineFilter {
  from?: string | undefined;
  to?: string | undefined;
  after?: string | undefined;
  limit?: number | undefined;
}

/** What happened between two times, the newest first. `linkOf` renders the object of a row. */
export function timelinePageOf<Deps>(
  view: {
    input: object;
    read: (deps: Deps, query: Query) => TimelinePage | Promise<TimelinePage>;
  },
  linkOf: (subject: string) => unknown,
): Page<Deps> {
  const filters = FILTERS.filter((name) => name in view.input);
  const columns: readonly Column<TimelineRow>[] = [
    { head: 'At', cell: ({ at }) => clockTime(Date.parse(at)) },
    { head: 'Source', cell: ({ source }) => badge(source, TONES[source]) },
    { head: 'What', cell: ({ event }) => html`<code>${event}</code>` },
    { head: 'To what', cell: ({ subject }) => (subject === null ? '' : linkOf(subject)) },
    { head: 'By', cell: ({ by }) => named(by) },
    { head: 'Particulars', cell: ({ text }) => given(text) },
  ];
  return async (deps, { query }) => {
    const asked = Object.fromEntries(filters.map((name) => [name, query(name)?.trim() || undefined]));
    const times = { from: toTimestamp(query('from')), to: toTimestamp(query('to')) };
    const after = afterSchema.safeParse(query('after')).data;
    const { entries, next } = await view.read(deps, { ...asked, ...times, after, limit: PAGE });
    return {
      title: 'Timeline',
      body: html`<div class="head"><h1>Timeline</h1><span class="soft">the newest first, times in UTC</span></div>
<form class="card filter" action="${PATH}">
${(['from', 'to'] as const).map(
  (name) =>
    html`<label class="field"><span>${name === 'from' ? 'From' : 'To'}, UTC</span><input type="datetime-local" name="${name}" value="${times[name]?.slice(0, 16) ?? ''}"></label>`,
)}
${filters.map(
  (name) =>
    html`<label class="field grow"><span>${titleOf(name)}</span><input name="${name}" value="${asked[name] ?? ''}"></label>`,
)}
<button class="primary">Find</button><a class="button" href="${PATH}">Clear</a></form>
${live('timeline', table(columns, entries, 'Nothing happened then.'))}
${next === null ? '' : html`<nav class="pager"><a class="button" rel="next" href="${withQuery(PATH, { ...asked, ...times, after: next })}">Older »</a></nav>`}`,
    };
  };
}

function titleOf(name: string): string {
  return `${name.charAt(0).toUpperCase()}${name.slice(1)}`;
}

/** Reads a time of the form, which has no zone, or of a link. */
function toTimestamp(text: string | undefined): string | undefined {
  const given = anyTimestampSchema.safeParse(/Z$/i.test(text ?? '') ? text : `${text}:00Z`).data;
  return given === undefined ? undefined : new Date(given).toISOString();
}
