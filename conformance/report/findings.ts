import type { Requirement } from '../contract/requirements.ts';
import type { Problem, Shown } from '../evidence/finding.ts';
import { hasGoodCredential, type InstanceTimeline } from '../evidence/instances.ts';
import { LOOPBACK, leadsToItself } from '../evidence/logins.ts';
import { isObject, stringField } from '../text/json.ts';
import { printable } from '../text/printable.ts';
import { answerOf, isSuccess, jsonOf, requestOf, statusOf } from '../transcript/exchange.ts';
import type { Exchange } from '../transcript/records.ts';
import type { Judged } from '../verdict/judge.ts';
import { cut } from './excerpt.ts';
import { actualWithStatus } from './instance-status.ts';
import { lossCauses } from './lost-instances.ts';
import type { ReportFinding } from './report.ts';
import { staleCauses } from './stale-reads.ts';

const MAX_TITLE_CHARACTERS = 300;

/**
 * A fault behind failures of many checks, recognised in the answers that they refer to. Sorted by the order in which to
 * fix them.
 */
interface Root {
  /** Undefined if the answer does not have the fault. The same text is the same finding. */
  of(exchange: Exchange): string | undefined;
  /** The requirement whose usual cause it is. */
  like?: string;
}

const ROOTS: readonly Root[] = [
  {
    of: ({ failure, request }) => failure && `${routeOf(request)} is not answered: ${failure.message}`,
    like: 'WIRE-REACH-001',
  },
  {
    of: (exchange) =>
      [401, 403].includes(statusOf(exchange) ?? 0) && hasGoodCredential(exchange)
        ? `a good credential is refused with ${statusOf(exchange)}`
        : undefined,
    like: 'AUTH-KEY-001',
  },
  {
    of: (exchange) =>
      statusOf(exchange) === 403 && !hasGoodCredential(exchange)
        ? 'requests without a good credential are answered 403, not 401'
        : undefined,
    like: 'AUTH-401-002',
  },
  {
    of: (exchange) =>
      (statusOf(exchange) ?? 0) >= 500
        ? `${routeOf(exchange.request)} answers ${statusOf(exchange)}`
        : undefined,
    like: 'ERR-5XX-001',
  },
  {
    of: (exchange) =>
      isSuccess(exchange) && Array.isArray(jsonOf(exchange))
        ? 'lists are bare arrays, and not in an object such as {"instances": […]}'
        : undefined,
  },
  {
    of: (exchange) => {
      const body = jsonOf(exchange);
      return isSuccess(exchange) && isObject(body) && isObject(body['error'])
        ? 'errors are answered with a 2xx status'
        : undefined;
    },
    like: 'WIRE-STATUS-001',
  },
  {
    of: (exchange) =>
      (statusOf(exchange) ?? 0) >= 400 && !hasEnvelope(exchange)
        ? 'errors are not {"error": {"code": "…", "message": "…"}}'
        : undefined,
    like: 'ERR-ENVELOPE-001',
  },
  {
    of: ({ answer }) =>
      answer !== undefined && answer.body !== '' && !(answer.headers['content-type'] ?? '').includes('json')
        ? 'bodies are not said to be application/json'
        : undefined,
    like: 'WIRE-JSON-001',
  },
];

function hasEnvelope(exchange: Exchange): boolean {
  const body = jsonOf(exchange);
  const error = isObject(body) ? body['error'] : undefined;
  return Boolean(stringField(error, 'code')) && Boolean(stringField(error, 'message'));
}

/** `GET /instances/{id}`: a request without the parts that differ between runs. */
function routeOf({ method, path }: Exchange['request']): string {
  const [first, second, third] = (path.split('?')[0] ?? '').split('/').slice(1);
  const isList = second === undefined || second === 'locations' || first === 'auth';
  return `${method} /${[first, isList ? second : '{id}', third].filter((part) => part !== undefined).join('/')}`;
}

/** Includes the names of the query's fields: `GET /availability?region`. */
function requestKindOf({ request }: Exchange): string {
  const query = new URLSearchParams(request.path.split('?')[1] ?? '');
  return routeOf(request) + (query.size === 0 ? '' : `?${[...query.keys()].join('&')}`);
}

/** Why a check failed, recognised in what was answered. */
export interface Cause {
  /** The same title is the same finding. */
  title: string;
  rank: number;
  /** What usually leads to it, and where to look. */
  text?: string | undefined;
}

/** The usual cause of each requirement, by id. */
type UsualCauses = ReadonlyMap<string, string | undefined>;

/** The rank of a cause that is seen in several exchanges: before all that is seen in one. */
const SHARED = -1;

/** The causes of the failed requirements that were recognised, by id. */
export function causesOf(
  judged: readonly Judged[],
  timelines: readonly InstanceTimeline[],
): ReadonlyMap<string, Cause> {
  const usual = new Map(judged.map(({ requirement }) => [requirement.id, requirement.cause]));
  const failures = new Map(
    judged.flatMap(({ requirement: { id }, ruling, verdict }) =>
      verdict === 'fail' && ruling.verdict === 'fail' ? [[id, ruling.problems] as const] : [],
    ),
  );
  const causes = new Map<string, Cause>();
  const shared = [...staleCauses(failures, timelines), ...lossCauses(failures, timelines)];
  for (const { title, ids, like } of shared) {
    const cause = { title, rank: SHARED, text: usual.get(like) };
    for (const id of ids) if (!causes.has(id)) causes.set(id, cause);
  }
  for (const { requirement, ruling, verdict } of judged) {
    if (ruling.verdict !== 'fail' || verdict !== 'fail' || causes.has(requirement.id)) continue;
    const cause = causeOf(ruling.problems, usual) ?? loopbackCause(ruling);
    if (cause !== undefined) causes.set(requirement.id, cause);
  }
  return causes;
}

/** The first fault that all problems of a check have in common. Undefined if there is none. */
function causeOf(problems: readonly Problem[], usual: UsualCauses): Cause | undefined {
  const [first = [], ...rest] = problems.map(({ shown }) => rootsOf(shown, usual));
  return first.find(({ rank }) => rest.every((roots) => roots.some((root) => root.rank === rank)));
}

/** An answer may have several faults. */
function rootsOf(shown: Shown | undefined, usual: UsualCauses): Cause[] {
  if (shown?.kind !== 'exchange') return [];
  return ROOTS.flatMap(({ of, like = '' }, rank) => {
    const title = of(shown);
    return title === undefined ? [] : [{ title, rank, text: usual.get(like) }];
  });
}

/** No login got an answer, and all went to the computer that sent them. */
function loopbackCause({ problems, of }: { problems: readonly Problem[]; of: number }): Cause | undefined {
  const logins = problems.flatMap(({ shown }) => (shown?.kind === 'ssh' ? [shown] : []));
  const [first] = logins;
  if (first === undefined || logins.length < of || !logins.every(leadsToItself)) return undefined;
  const title = `public_ip is ${printable(first.host, 60)}, and nothing answers there`;
  return { title, rank: ROOTS.length, text: LOOPBACK };
}

/**
 * The failures by cause, in the order in which to fix them: stale reads, faults behind many checks, then failed checks
 * with a cause of their own, then warnings.
 */
export function toFindings(
  judged: readonly Judged[],
  causes: ReadonlyMap<string, Cause>,
  timelines: readonly InstanceTimeline[],
): ReportFinding[] {
  const found = new Map<string, { rank: number; finding: ReportFinding }>();
  const known = [...causes.keys()].flatMap((id) => judged.filter(({ requirement }) => requirement.id === id));
  for (const { requirement, ruling, verdict } of new Set([...known, ...judged])) {
    if (ruling.verdict !== 'fail') continue;
    const cause = causes.get(requirement.id);
    const rank = cause?.rank ?? ROOTS.length + (verdict === 'warn' ? 1 : 0);
    const key = cause?.title ?? requirement.id;
    const same = found.get(key);
    if (same !== undefined) {
      same.finding.checks.push(requirement.id);
      same.finding.places += ruling.problems.length;
      continue;
    }
    const [first] = ruling.problems;
    const actual = first === undefined ? '' : actualWithStatus(first, timelines);
    const finding: ReportFinding = {
      title: cut(cause?.title ?? titleOf(first, actual, requirement), MAX_TITLE_CHARACTERS),
      checks: [requirement.id],
      places: ruling.problems.length,
      ...(first?.shown?.kind === 'exchange' && { first: firstOf(first.shown) }),
    };
    found.set(key, { rank, finding });
  }
  return [...found.values()].toSorted((a, b) => a.rank - b.rank).map(({ finding }) => finding);
}

/** The expected and actual result of a check with a cause of its own. */
function titleOf(first: Problem | undefined, actual: string, { means, text }: Requirement): string {
  if (first === undefined) return means ?? text;
  const asked = first.shown?.kind === 'exchange' ? `${requestKindOf(first.shown)}: ` : '';
  return `${asked}${actual}; expected: ${first.expected}`;
}

function firstOf(exchange: Exchange): string {
  return cut(`${requestOf(exchange)} → ${answerOf(exchange)}`, MAX_TITLE_CHARACTERS);
}
