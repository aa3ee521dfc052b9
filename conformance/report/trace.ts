import type { Problem, Shown } from '../evidence/finding.ts';
import type { InstanceTimeline, Observation } from '../evidence/instances.ts';
import { cut } from './excerpt.ts';
import { isAbout } from './instance-status.ts';
import type { ReportTrace, TraceRow, TraceSource } from './report.ts';
import { round } from './shown.ts';

const MAX_TRACES = 3;
const MAX_ROWS = 20;
/** How many rows before the first problem are kept. */
const ROWS_BEFORE_PROBLEM = 10;
const MAX_STATUS_CHARACTERS = 60;
/** A shorter id may occur in a text by chance. */
const MIN_ID_CHARACTERS = 6;

/** The traces of the instances that problems are about. */
export function tracesOf(
  problems: readonly Problem[],
  instances: readonly InstanceTimeline[],
  texts: readonly string[],
): ReportTrace[] {
  const shown = new Set(problems.flatMap((problem) => problem.shown ?? []));
  const found = instances.filter(
    (timeline) => timeline.observations.length > 0 && isShown(timeline, shown, texts),
  );
  return found.slice(0, MAX_TRACES).map((timeline) => toTrace(timeline, shown));
}

function isShown(
  { id, created }: InstanceTimeline,
  shown: ReadonlySet<Shown>,
  texts: readonly string[],
): boolean {
  if (id.length >= MIN_ID_CHARACTERS && texts.some((text) => text.includes(id))) return true;
  return [...shown].some((record) => record === created || isAbout(record, id));
}

function toTrace(timeline: InstanceTimeline, shown: ReadonlySet<Shown>): ReportTrace {
  const rows: TraceRow[] = [];
  for (const observation of timeline.observations) {
    const row = toRow(observation, timeline, shown);
    const last = rows.at(-1);
    if (last !== undefined && isSame(last, row)) extend(last, row);
    else rows.push(row);
  }
  const problem = rows.findIndex((row) => row.is_problem === true);
  const last = Math.max(rows.length - MAX_ROWS, 0);
  const start = problem < 0 ? last : Math.min(Math.max(problem - ROWS_BEFORE_PROBLEM, 0), last);
  const kept = rows.slice(start, start + MAX_ROWS);
  return {
    instance_id: cut(timeline.id, 300),
    name: timeline.resource.name,
    earlier: start,
    later: rows.length - start - kept.length,
    rows: kept,
  };
}

function toRow(
  { status, exchange, source }: Observation,
  timeline: InstanceTimeline,
  shown: ReadonlySet<Shown>,
): TraceRow {
  return {
    from_ms: round(exchange.sentAt),
    to_ms: round(exchange.sentAt),
    at: exchange.wall,
    status: cut(status, MAX_STATUS_CHARACTERS),
    by: [source === 'get' ? 'read' : source === 'list' ? 'list' : actionOf(exchange, timeline)],
    times: 1,
    // A problem of a list may concern another instance.
    ...(shown.has(exchange) && source !== 'list' && { is_problem: true }),
  };
}

function actionOf(
  exchange: Observation['exchange'],
  { deletes, starts, stops }: InstanceTimeline,
): TraceSource {
  if (deletes.includes(exchange)) return 'delete';
  if (starts.includes(exchange)) return 'start';
  return stops.includes(exchange) ? 'stop' : 'create';
}

function isSame(a: TraceRow, b: TraceRow): boolean {
  const isPolled = [...a.by, ...b.by].every((source) => source === 'read' || source === 'list');
  return isPolled && a.status === b.status && a.is_problem === b.is_problem;
}

function extend(row: TraceRow, next: TraceRow): void {
  row.to_ms = next.to_ms;
  row.times += next.times;
  row.by = [...new Set([...row.by, ...next.by])];
}
