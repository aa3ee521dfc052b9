import type { Requirement } from '../contract/requirements.ts';
import type { Problem, Shown } from '../evidence/finding.ts';
import { hasGoodCredential } from '../evidence/instances.ts';
import { isObject, stringField } from '../text/json.ts';
import { answerOf, isSuccess, jsonOf, requestOf, statusOf } from '../transcript/exchange.ts';
import type { Exchange } from '../transcript/records.ts';
import type { Judged } from '../verdict/judge.ts';
import { cut } from './excerpt.ts';
import type { ReportFinding } from './report.ts';

const MAX_TITLE_CHARACTERS = 300;

/**
 * A fault behind failures of many checks, recognised in the answers that they refer to. Sorted by the order in which to
 * fix them.
 */
interface Root {
  /** Undefined if the answer does not have the fault. The same text is the same finding. */
  of(exchange: Exchange): string | undefined;
}

const ROOTS: readonly Root[] = [
  {
    of: ({ failure, request }) => failure && `${routeOf(request)} is not answered: ${failure.message}`,
  },
  {
    of: (exchange) =>
      [401, 403].includes(statusOf(exchange) ?? 0) && hasGoodCredential(exchange)
        ? `a good credential is refused with ${statusOf(exchange)}`
        : undefined,
  },
  {
    of: (exchange) =>
      statusOf(exchange) === 403 && !hasGoodCredential(exchange)
        ? 'requests without a good credential are answered 403, not 401'
        : undefined,
  },
  {
    of: (exchange) =>
      (statusOf(exchange) ?? 0) >= 500
        ? `${routeOf(exchange.request)} answers ${statusOf(exchange)}`
        : undefined,
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
  },
  {
    of: (exchange) =>
      (statusOf(exchange) ?? 0) >= 400 && !hasEnvelope(exchange)
        ? 'errors are not {"error": {"code": "…", "message": "…"}}'
        : undefined,
  },
  {
    of: ({ answer }) =>
      answer !== undefined && answer.body !== '' && !(answer.headers['content-type'] ?? '').includes('json')
        ? 'bodies are not said to be application/json'
        : undefined,
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

interface Cause {
  title: string;
  rank: number;
}

/** The first fault that all problems of a check have in common. Undefined if there is none. */
function causeOf(problems: readonly Problem[]): Cause | undefined {
  const [first = [], ...rest] = problems.map(({ shown }) => rootsOf(shown));
  return first.find(({ rank }) => rest.every((roots) => roots.some((root) => root.rank === rank)));
}

/** An answer may have several faults. */
function rootsOf(shown: Shown | undefined): Cause[] {
  if (shown?.kind !== 'exchange') return [];
  return ROOTS.flatMap((root, rank) => {
    const title = root.of(shown);
    return title === undefined ? [] : [{ title, rank }];
  });
}

/**
 * The failures by cause, in the order in which to fix them: faults behind many checks, then failed checks with a cause
 * of their own, then warnings.
 */
export function toFindings(judged: readonly Judged[]): ReportFinding[] {
  const found = new Map<string, { rank: number; finding: ReportFinding }>();
  for (const { requirement, ruling, verdict } of judged) {
    if (ruling.verdict !== 'fail') continue;
    const cause = verdict === 'fail' ? causeOf(ruling.problems) : undefined;
    const rank = cause?.rank ?? ROOTS.length + (verdict === 'warn' ? 1 : 0);
    const key = cause?.title ?? requirement.id;
    const known = found.get(key);
    if (known !== undefined) {
      known.finding.checks.push(requirement.id);
      known.finding.places += ruling.problems.length;
      continue;
    }
    const [first] = ruling.problems;
    const finding: ReportFinding = {
      title: cut(cause?.title ?? titleOf(first, requirement), MAX_TITLE_CHARACTERS),
      checks: [requirement.id],
      places: ruling.problems.length,
      ...(first?.shown?.kind === 'exchange' && { first: firstOf(first.shown) }),
    };
    found.set(key, { rank, finding });
  }
  return [...found.values()].toSorted((a, b) => a.rank - b.rank).map(({ finding }) => finding);
}

/** The expected and actual result of a check with a cause of its own. */
function titleOf(first: Problem | undefined, { means, text }: Requirement): string {
  if (first === undefined) return means ?? text;
  const asked = first.shown?.kind === 'exchange' ? `${requestKindOf(first.shown)}: ` : '';
  return `${asked}${first.actual}; expected: ${first.expected}`;
}

function firstOf(exchange: Exchange): string {
  return cut(`${requestOf(exchange)} → ${answerOf(exchange)}`, MAX_TITLE_CHARACTERS);
}
