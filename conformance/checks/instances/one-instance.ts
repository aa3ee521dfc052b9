import type { Evidence } from '../../evidence/evidence.ts';
import { type Finding, judgeEach, notTested, refuseTooLong } from '../../evidence/finding.ts';
import { hasGoodCredential, isCreate } from '../../evidence/instances.ts';
import { isLoggedIn } from '../../evidence/logins.ts';
import { namesOfRun } from '../../http/plain-identity.ts';
import { idOf, stringField } from '../../text/json.ts';
import { printable } from '../../text/printable.ts';
import { listOf, successOf } from '../../transcript/exchange.ts';
import type { Exchange, SshRecord } from '../../transcript/records.ts';
import type { Check } from '../check.ts';

const scenarios = ['create'];

/** One create makes one instance: the run can explain every instance that is new in the account's list. */
export const oneInstanceChecks: readonly Check[] = [
  {
    id: 'INS-ONE-001',
    level: 'lifecycle',
    scenarios,
    judge: (evidence) =>
      judgeLists(evidence, ({ id, name, login, list }) =>
        login === undefined && !isNamedByRun(evidence, name)
          ? undefined
          : {
              expected: 'no instances but those that the creates returned',
              actual: `${id} (${name}), which no create returned${login === undefined ? '' : '; the run’s key logs in to it'}`,
              shown: login ?? list,
            },
      ),
  },
  {
    id: 'INS-ONE-002',
    level: 'lifecycle',
    scenarios,
    judge: (evidence) =>
      judgeLists(evidence, ({ id, name, login }) =>
        login !== undefined || isNamedByRun(evidence, name)
          ? undefined
          : {
              expected: 'no instances but those that the creates returned',
              actual: `${id} (${name}), which no create returned; where only the run uses the account, one of them made it`,
            },
      ),
  },
];

/** An instance that is new in a list, and that no create of the run returned. */
interface Unexplained {
  id: string;
  name: string;
  /** The first list that shows it. */
  list: Exchange;
  /** A login with the run's key that succeeded. */
  login: SshRecord | undefined;
}

function judgeLists(
  evidence: Evidence,
  problemOf: (found: Unexplained) => { expected: string; actual: string } | undefined,
): Finding {
  const asked = evidence.exchanges.filter(asksForAll);
  refuseTooLong(asked);
  const lists = asked.filter((exchange) => listOf(exchange) !== undefined);
  const firstCreate = evidence.exchanges.find(isCreate);
  const after = lists.filter(({ sentAt }) => firstCreate !== undefined && sentAt >= firstCreate.endedAt);
  const before = lists.filter((list) => !after.includes(list));
  if (before.length === 0 || after.length === 0)
    return notTested('the account was not listed both before the first create and after it');
  const found = unexplainedIn(after, explainedIds(evidence, before), evidence);
  const problems = found.flatMap((one) => {
    const problem = problemOf(one);
    return problem === undefined ? [] : [{ shown: one.list, ...problem }];
  });
  return problems.length > 0
    ? { verdict: 'fail', problems, of: found.length }
    : judgeEach(
        after,
        'lists after the first create',
        () => undefined,
        (list) => list,
      );
}

function unexplainedIn(
  lists: readonly Exchange[],
  explained: ReadonlySet<string>,
  evidence: Evidence,
): Unexplained[] {
  const found = new Map<string, Unexplained>();
  for (const list of lists)
    for (const instance of listOf(list) ?? []) {
      const [id, name = ''] = [idOf(instance), stringField(instance, 'name')];
      if (id === undefined || explained.has(id) || found.has(id)) continue;
      if (isOfUnclearCreate(evidence, name)) continue;
      const login = evidence.logins.find(
        ({ step, instanceId, rung }) =>
          step === 'cleanup/stray-login' && instanceId === id && isLoggedIn({ rung }),
      );
      found.set(id, { id: printable(id, 60), name: printable(name || 'without a name', 60), list, login });
    }
  return [...found.values()];
}

/** Those that were there before, and those that a create returned or that were found by the name of an unclear one. */
function explainedIds(evidence: Evidence, before: readonly Exchange[]): Set<string> {
  const listed = before.flatMap((list) => listOf(list) ?? []).flatMap((instance) => idOf(instance) ?? []);
  const returned = evidence.sent.filter(isCreate).flatMap((exchange) => idOf(successOf(exchange)) ?? []);
  const found = evidence.resources.flatMap(({ id, step }) =>
    id === undefined || step === 'cleanup/strays' ? [] : [id],
  );
  return new Set([...listed, ...returned, ...found]);
}

/** Whether it has the name of a create that was refused or had no clear answer: what such a create makes is judged elsewhere. */
function isOfUnclearCreate({ resources }: Evidence, name: string): boolean {
  return resources.some(
    (resource) =>
      (resource.state === 'refused' || resource.state === 'unknown') && name.startsWith(resource.name),
  );
}

const isNamedByRun = ({ run }: Evidence, name: string): boolean => namesOfRun(run).isOwn(name);

const asksForAll = (exchange: Exchange): boolean =>
  exchange.request.method === 'GET' && exchange.request.path === '/instances' && hasGoodCredential(exchange);
