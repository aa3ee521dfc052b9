import type { Evidence } from '../../evidence/evidence.ts';
import { type Finding, judgeEachExchange, notTested, type Problem } from '../../evidence/finding.ts';
import { isLoggedIn, workedBefore } from '../../evidence/logins.ts';
import { offerTypes, staticDifferences } from '../../evidence/offers.ts';
import { hasField, idOf, type JsonObject, objectsField, stringField } from '../../text/json.ts';
import { listed, shortJson } from '../../text/wording.ts';
import { answerOf, isSuccess, jsonOf, successOf } from '../../transcript/exchange.ts';
import type { Exchange } from '../../transcript/records.ts';
import { type Check, unlessReclaimed } from '../check.ts';

const scenarios = ['restart'];

/** What an instance and a volume are; it cannot change without a request. */
const INSTANCE_FIELDS = ['id', 'configuration_id', 'region', 'status', 'created_at'];
const VOLUME_FIELDS = ['id', 'name', 'size_gb', 'region', 'type', 'status', 'created_at'];
/** Fields for whose change the contract has no rule. */
const OTHER_FIELDS = ['name', 'public_ip', 'ssh_port', 'ssh_username'];

/** What was known before a restart of the target reads the same after it. */
export const restartChecks: readonly Check[] = [
  {
    id: 'RESTART-INS-001',
    level: 'lifecycle',
    scenarios,
    judge: (evidence) => unlessReclaimed(evidence, judgeInstance(evidence)),
  },
  { id: 'RESTART-SAME-001', level: 'lifecycle', scenarios, judge: judgeOtherFields },
  { id: 'RESTART-OFFER-001', level: 'lifecycle', scenarios, judge: judgeOffers },
  { id: 'RESTART-VOL-001', level: 'full', scenarios, judge: judgeVolume },
];

/** The same read before and after the restart. Throws `MissingEvidence`. */
function bothReads(evidence: Evidence, what: string): { before: Exchange; after: Exchange } {
  const lastOf = (step: string): Exchange => evidence.steps(step).at(-1) ?? evidence.step(step);
  return { before: lastOf(`restart/before/${what}`), after: lastOf(`restart/after/${what}`) };
}

function judgeInstance(evidence: Evidence): Finding {
  const finding = judgeFields(evidence, 'instance', INSTANCE_FIELDS);
  const unlet = evidence.logins.find(
    (login) => login.step === 'restart/login' && !isLoggedIn(login) && workedBefore(evidence, login),
  );
  if (finding.verdict !== 'pass' || unlet === undefined) return finding;
  const { after } = bothReads(evidence, 'instance');
  return judgeEachExchange([after], 'reads of an instance after a restart', () => ({
    expected: `the ${unlet.key} of its keys logs in, as before the restart`,
    actual: unlet.message ?? `no further than ${unlet.rung}`,
    shown: unlet,
  }));
}

function judgeVolume(evidence: Evidence): Finding {
  return judgeFields(evidence, 'volume', VOLUME_FIELDS);
}

function judgeFields(evidence: Evidence, what: string, fields: readonly string[]): Finding {
  const { before, after } = bothReads(evidence, what);
  const known = successOf(before);
  if (known === undefined)
    return notTested(`the ${what} could not be read before the restart: ${answerOf(before)}`);
  return judgeEachExchange([after], `reads of ${what}s after a restart`, (): Problem | undefined => {
    const now = successOf(after);
    if (now === undefined) return { expected: `the ${what}, as before the restart`, actual: answerOf(after) };
    return differenceOf(fields, known, now);
  });
}

function differenceOf(fields: readonly string[], before: JsonObject, after: JsonObject): Problem | undefined {
  const differing = fields.filter((field) => hasField(before, field) && before[field] !== after[field]);
  if (differing.length === 0) return undefined;
  const shownIn = (body: JsonObject): string =>
    listed(differing.map((field) => `${field} ${shortJson(body[field])}`));
  return { expected: `${shownIn(before)}, as before the restart`, actual: shownIn(after) };
}

/** The price of a SPOT instance moves. */
function judgeOtherFields(evidence: Evidence): Finding {
  const { before, after } = bothReads(evidence, 'instance');
  const [known, now] = [successOf(before), successOf(after)];
  if (known === undefined || now === undefined)
    return notTested('the instance was not read both before the restart and after it');
  const own = evidence.instances.find(({ id }) => id === idOf(known));
  const isSpot = own !== undefined && offerTypes(evidence)(own) === 'SPOT';
  const fields = isSpot ? OTHER_FIELDS : [...OTHER_FIELDS, 'price_per_hour'];
  return judgeEachExchange([after], 'reads of instances after a restart', () =>
    differenceOf(fields, known, now),
  );
}

function judgeOffers(evidence: Evidence): Finding {
  const { before, after } = bothReads(evidence, 'configurations');
  if (!isSuccess(before)) return notTested(`the offers could not be read before: ${answerOf(before)}`);
  const now = new Map(offersIn(after));
  return judgeEachExchange([after], 'reads of the offers after a restart', (): Problem | undefined => {
    const faults = offersIn(before).flatMap(([id, offer]) => {
      const same = now.get(id);
      if (same === undefined) return [`${shortJson(id)} is not listed`];
      return staticDifferences(offer, same).map((change) => `${shortJson(id)}: ${change}`);
    });
    if (faults.length === 0) return undefined;
    return { expected: 'each offer under its id, as before the restart', actual: listed(faults) };
  });
}

function offersIn(exchange: Exchange): [string, JsonObject][] {
  return objectsField(jsonOf(exchange), 'configurations').flatMap((offer): [string, JsonObject][] => {
    const id = stringField(offer, 'id');
    return id === undefined ? [] : [[id, offer]];
  });
}
