import type { Evidence } from '../../evidence/evidence.ts';
import { type Finding, judgeEach, type Problem } from '../../evidence/finding.ts';
import type { SeenObject } from '../../evidence/objects.ts';
import { isObject } from '../../text/json.ts';
import { listed, shortJson } from '../../text/wording.ts';
import { statusOf } from '../../transcript/exchange.ts';
import type { Exchange } from '../../transcript/records.ts';
import type { Check } from '../check.ts';

export const timestampChecks: readonly Check[] = [
  {
    id: 'WIRE-TIME-001',
    level: 'lifecycle',
    scenarios: ['create', 'boot', 'online'],
    judge: judgeTimestamps,
  },
];

/** The contract's timestamp fields, checked if they are strings. */
const TIMESTAMPS = ['created_at', 'updated_at'];
const RFC_3339_UTC = /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]00:00)$/;
/** A wrong clock is rarely off by more than this; time zones differ from UTC by half an hour or more. */
const MOST_SKEW_MINUTES = 15;
const MS_PER_MINUTE = 60_000;

export function isUtcTimestamp(text: string): boolean {
  if (!RFC_3339_UTC.test(text)) return false;
  const at = Date.parse(text.toUpperCase());
  // Date.parse reads a day that does not exist, such as 30 February, as one of the next month.
  return !Number.isNaN(at) && new Date(at).toISOString().startsWith(text.slice(0, 10));
}

function judgeTimestamps(evidence: Evidence): Finding {
  const { instances, volumes } = evidence.objects;
  const stamped = [...instances, ...volumes].filter(({ value }) => timestampsOf(value).length > 0);
  return judgeEach(stamped, 'instances and volumes with timestamps', timeProblem, ({ exchange }) => exchange);
}

function timeProblem({ value, at, exchange }: SeenObject): Problem | undefined {
  const stamps = timestampsOf(value);
  const wrong = stamps.filter(([, text]) => !isUtcTimestamp(text));
  if (wrong.length > 0)
    return {
      expected: 'RFC 3339 in UTC, such as 2026-01-31T09:30:00Z',
      actual: `${listed(wrong.map(([name, text]) => `${name} is ${shortJson(text)}`))}${at === '' ? '' : `, in ${at}`}`,
    };
  const createdAt = new Map(stamps).get('created_at');
  return statusOf(exchange) === 201 && createdAt !== undefined ? zoneProblem(createdAt, exchange) : undefined;
}

/** The creation time must be now; local time marked as UTC is off by its zone. */
function zoneProblem(createdAt: string, { answer, wall }: Exchange): Problem | undefined {
  const date = Date.parse(answer?.headers['date'] ?? '');
  const now = Number.isNaN(date) ? Date.parse(wall) : date;
  const offMs = Date.parse(createdAt.toUpperCase()) - now;
  if (Math.abs(offMs) <= MOST_SKEW_MINUTES * MS_PER_MINUTE) return undefined;
  const clock = Number.isNaN(date) ? 'the clock of this machine' : 'the Date of the same answer';
  return {
    expected: `a created_at about ${new Date(now).toISOString()}, by ${clock}`,
    actual: `created_at is ${shortJson(createdAt)}, ${Math.round(Math.abs(offMs) / MS_PER_MINUTE)} minutes ${offMs < 0 ? 'before' : 'after'} it`,
  };
}

function timestampsOf(value: unknown): [name: string, text: string][] {
  if (!isObject(value)) return [];
  return TIMESTAMPS.flatMap((name): [string, string][] => {
    const field = value[name];
    return typeof field === 'string' ? [[name, field]] : [];
  });
}
