import type { Evidence } from '../../evidence/evidence.ts';
import {
  type Finding,
  judgeEach,
  judgeEachExchange,
  notApplicable,
  notTested,
  type Problem,
} from '../../evidence/finding.ts';
import type { InstanceTimeline, Observation } from '../../evidence/instances.ts';
import { isLoggedIn } from '../../evidence/logins.ts';
import { holdsUnit } from '../../scenarios/capacity/race.ts';
import type { Place } from '../../scenarios/catalog/catalog.ts';
import { RECLAIMED } from '../../scenarios/scenario.ts';
import { sshEndpointOf } from '../../scenarios/session.ts';
import { isObject, type JsonObject, objectsField, parseJson, stringField } from '../../text/json.ts';
import { printable } from '../../text/printable.ts';
import { shortJson } from '../../text/wording.ts';
import { answerOf, isSuccess, jsonOf, statusOf, successOf } from '../../transcript/exchange.ts';
import type { Exchange, SshRecord } from '../../transcript/records.ts';
import { type Check, withoutRateLimited } from '../check.ts';
import { heldBefore, raced } from './place.ts';

const scenarios = ['race'];

export const raceChecks: readonly Check[] = [
  { id: 'RACE-CREATE-001', level: 'full', scenarios, judge: judgeCreates },
  { id: 'RACE-LIVE-001', level: 'full', scenarios, judge: judgeLives },
  { id: 'RACE-UNITS-001', level: 'full', scenarios, judge: judgeUnits },
];

function judgeCreates(evidence: Evidence): Finding {
  const asked = withoutRateLimited(evidence.steps('race/create'));
  const taken = new Set<string>();
  return judgeEachExchange(asked, 'creates at the same moment', (exchange) => {
    const status = statusOf(exchange);
    if (status === 409) return undefined;
    if (!isSuccess(exchange))
      return {
        expected: '201 with an instance, or 409 where the capacity is gone',
        actual: answerOf(exchange),
      };
    const id = stringField(successOf(exchange), 'id') ?? '';
    const isTaken = taken.has(id);
    taken.add(id);
    return isTaken
      ? { expected: 'an id of its own for each instance', actual: `${shortJson(id)} was given out twice` }
      : undefined;
  });
}

function racers(evidence: Evidence, step = 'race/create'): InstanceTimeline[] {
  evidence.steps('race/create');
  const creates = evidence.anySteps(step);
  return evidence.instances.filter(({ created }) => created !== undefined && creates.includes(created));
}

interface Life {
  timeline: InstanceTimeline;
  last: Observation | undefined;
}

function toLife(timeline: InstanceTimeline): Life {
  return { timeline, last: timeline.observations.findLast(({ exchange }) => exchange.step === 'race/poll') };
}

/** ERROR with its text, which the contract allows of a machine. */
function hasFailed({ last }: Life): boolean {
  return last?.status === 'ERROR' && stringField(last.instance, 'error') !== undefined;
}

/** A race in which one machine failed fails only if the machine that took its place failed, too. */
function judgeFailure(evidence: Evidence, failed: Life): Finding | undefined {
  const again = racers(evidence, 'race/repeat/create').map(toLife).at(0);
  const problem = {
    expected: `${shortJson(failed.timeline.id)}, or what was created in its place, comes ONLINE`,
    actual: `both read ERROR${errorOf(failed.last?.instance)}, and${errorOf(again?.last?.instance)}`,
  };
  if (again !== undefined && hasFailed(again))
    return judgeEach(
      [again],
      'instances in the place of one that failed',
      () => problem,
      ({ last }) => last?.exchange,
    );
  if (again?.last?.status === 'ONLINE') return undefined;
  return notTested(
    `${failed.timeline.id} failed, which the contract allows: ERROR${errorOf(failed.last?.instance)}; none in its place came ONLINE or failed`,
  );
}

/** Judges each instance by the last read before its destruction. */
function judgeLives(evidence: Evidence): Finding {
  const all = racers(evidence).map(toLife);
  if (all.length === 0) return notTested('no create was accepted');
  const reclaimed = all.find(({ timeline }) => timeline.reclaimed !== undefined);
  if (reclaimed !== undefined) return notTested(RECLAIMED);
  const failed = all.filter(hasFailed);
  // With two that failed, the failure has repeated.
  const onlyOne = failed.length === 1 ? failed[0] : undefined;
  const failure = onlyOne && judgeFailure(evidence, onlyOne);
  if (failure !== undefined) return failure;
  const lives = all.filter((life) => life !== onlyOne);
  if (lives.length === 0)
    return notTested('the only instance of the race failed; the one in its place came ONLINE');
  const waiting = lives.find(({ last }) => last?.status === 'PROVISIONING');
  if (waiting !== undefined)
    return notTested(
      `${waiting.timeline.id} was still PROVISIONING when the run's patience was over (--ready-timeout-s waits longer)`,
    );
  const unread = lives.find(({ last }) => last === undefined);
  if (unread !== undefined) return notTested(`the run ended before it read ${shortJson(unread.timeline.id)}`);
  const endpoints = new Map<string, string>();
  const unlet = failedLogins(evidence);
  return judgeEach(
    lives,
    'instances that were created at the same moment',
    ({ timeline: { id }, last }): Problem | undefined => {
      if (last?.status !== 'ONLINE')
        return {
          expected: `${shortJson(id)}, which was answered 201, comes ONLINE`,
          actual: `it reads ${printable(last?.status ?? 'nothing', 60)}${errorOf(last?.instance)}`,
        };
      const endpoint = endpointOf(last.instance);
      const other = endpoints.get(endpoint);
      endpoints.set(endpoint, id);
      if (other !== undefined)
        return {
          expected: `an SSH endpoint of its own for ${shortJson(id)}`,
          actual: `${shortJson(endpoint)}, which ${shortJson(other)} has too`,
        };
      const login = unlet.get(id);
      return login === undefined
        ? undefined
        : {
            expected: `the first of the keys in ssh_keys logs in to ${shortJson(id)}`,
            actual: `${shortJson(endpoint)}: ${login.message ?? `no further than ${login.rung}`}`,
            shown: login,
          };
    },
    ({ last }) => last?.exchange,
  );
}

function errorOf(instance: JsonObject | undefined): string {
  const error = stringField(instance, 'error');
  return error === undefined ? '' : `, with error ${shortJson(error, 100)}`;
}

/** Behind a gateway that selects the machine by user name, two machines may share a port. */
function endpointOf(instance: JsonObject | undefined): string {
  const { host, port, username } = sshEndpointOf(instance ?? {});
  return `${username === undefined ? '' : `${username}@`}${host}:${port}`;
}

/**
 * The last failed login of each instance. Empty if no login to the first instance succeeded either: other checks judge
 * keys and networks.
 */
function failedLogins({ logins }: Evidence): ReadonlyMap<string, SshRecord> {
  if (!logins.some((login) => login.step === 'online/login-first' && isLoggedIn(login))) return new Map();
  const last = new Map(
    logins.filter(({ step }) => step === 'race/login').map((login) => [login.instanceId, login]),
  );
  return new Map([...last].filter(([, login]) => !isLoggedIn(login)));
}

function judgeUnits(evidence: Evidence): Finding {
  const { race } = evidence.run.settings;
  const asked = evidence.steps('race/create');
  if (race === undefined)
    return notApplicable(
      'an offer of known size (--race OFFER=UNITS)',
      'how many units of the offer there are is not known',
    );
  const [first] = asked;
  const limited = asked.filter((exchange) => statusOf(exchange) === 429);
  if (limited.length > 0) return notTested(`${limited.length} of ${asked.length} creates were limited: 429`);
  if (asked.length <= race.units)
    return notTested(`the run ended when ${asked.length} of ${race.units + 1} creates had been answered`);
  const list = evidence.anySteps('race/list').findLast(isSuccess);
  const held = first === undefined ? [] : heldBefore(evidence, first);
  const own = held.filter((timeline) => isOfPlace(timeline, raced(evidence))).length;
  const others = first === undefined ? 0 : heldByOthers(evidence, first, list);
  const free = Math.max(race.units - own - (others ?? 0), 0);
  const accepted = asked.filter(isSuccess).length;
  if (others === undefined && accepted < free)
    return notTested(
      'the list before the race could not be read, and the account may hold units of the offer',
    );
  if (held.length > 0 && accepted < free)
    return notTested(`${accepted} of ${free} units were sold while the run held ${held.length} instances`);
  return judgeEach(
    [asked],
    `rounds of ${asked.length} creates at the same moment`,
    () =>
      accepted === free
        ? undefined
        : {
            expected: `${free} of ${asked.length} creates are accepted, as many as there are free units of ${race.offer}`,
            actual: `${accepted} are`,
          },
    () => first,
  );
}

/**
 * How many units of the raced offer other instances of the account held, according to the list read before the race.
 * A long list is truncated, but keeps the instances of that offer. Undefined if there is no such list.
 */
function heldByOthers(
  { instances }: Evidence,
  first: Exchange,
  list: Exchange | undefined,
): number | undefined {
  const listed = list === undefined ? undefined : jsonOf(list);
  if (!isObject(listed) || !Array.isArray(listed['instances'])) return undefined;
  const body = parseJson(first.request.body);
  const place = {
    configurationId: stringField(body, 'configuration_id'),
    region: stringField(body, 'region'),
  };
  const ids = new Set(instances.map(({ id }) => id));
  return objectsField(listed, 'instances').filter(
    (instance) => !ids.has(stringField(instance, 'id') ?? '') && holdsUnit(instance, place),
  ).length;
}

function isOfPlace({ observations }: InstanceTimeline, { configurationId, region }: Place): boolean {
  const instance = observations.find((observation) => observation.instance !== undefined)?.instance;
  return (
    stringField(instance, 'configuration_id') === configurationId &&
    stringField(instance, 'region') === region
  );
}
