import type { Evidence } from '../../evidence/evidence.ts';
import { type Finding, judgeEach, notTested } from '../../evidence/finding.ts';
import { REFUSAL_CASES } from '../../scenarios/instances/refusal-cases.ts';
import { type JsonObject, objectsField, stringField } from '../../text/json.ts';
import { shortJson } from '../../text/wording.ts';
import { answerOf, isSuccess, jsonOf, successOf } from '../../transcript/exchange.ts';
import type { Exchange, ResourceRecord } from '../../transcript/records.ts';
import { type Check, judgeStatus } from '../check.ts';

const scenarios = ['refusals'];

const UNSOLD_STEP = 'refusals/unsold-region';
/** The only case that depends on the catalogue. */
const UNSOLD_DEFECT = 'a region in which the offer is not sold';

export const refusalChecks: readonly Check[] = [
  refused('NEG-JSON-001', [400]),
  refused('NEG-REQUIRED-001', [400]),
  refused('NEG-KEYS-001', [400]),
  refused('NEG-KEYS-002', [400]),
  refused('NEG-TYPE-001', [400]),
  refused('NEG-TYPE-002', [400]),
  refused('NEG-CLOUD-001', [400]),
  refused('NEG-IMAGE-001', [400]),
  // An unknown offer also counts as one without capacity.
  refused('NEG-OFFER-001', [400, 409]),
  refused('NEG-REGION-001', [400, 409], [UNSOLD_STEP]),
  { id: 'NEG-NOTHING-001', level: 'lifecycle', scenarios, judge: judgeNothingMade },
];

function refused(id: string, statuses: readonly number[], moreSteps: readonly string[] = []): Check {
  const steps = [
    ...REFUSAL_CASES.filter((refusal) => refusal.of === id).map(({ step }) => step),
    ...moreSteps,
  ];
  return {
    id,
    level: 'lifecycle',
    scenarios,
    judge: (evidence) =>
      judgeStatus(
        evidence.steps(...steps),
        'creates with one defect',
        statuses,
        ({ step }) => `${statuses.join(' or ')}: the create has ${defectOf(step)}, and is valid but for that`,
      ),
  };
}

function defectOf(step: string): string {
  return REFUSAL_CASES.find((refusal) => refusal.step === step)?.defect ?? UNSOLD_DEFECT;
}

/** No refused create appears in the list afterwards under the name in its request. */
function judgeNothingMade(evidence: Evidence): Finding {
  const list = evidence.step('refusals/list');
  if (!isSuccess(list)) return notTested(`GET /instances was answered ${answerOf(list)}`);
  const listed = objectsField(jsonOf(list), 'instances');
  const refusedOnes = evidence.resources.flatMap((resource) => {
    const [exchange] = evidence.anySteps(resource.step);
    const isOurs = resource.step.startsWith('refusals/') && exchange !== undefined;
    return isOurs && successOf(exchange) === undefined ? [{ resource, exchange }] : [];
  });
  const nameless = newNameless(evidence, listed);
  if (nameless.length > 0)
    return notTested(
      `${nameless.length} instances without a name are new in the list, and may belong to others`,
    );
  return judgeEach(
    refusedOnes,
    'creates that were refused',
    ({ resource, exchange }) => {
      const made = listed.find((instance) => isOf(instance, resource));
      return made === undefined
        ? undefined
        : {
            expected: `nothing is made by a create that is refused`,
            actual: `the list has ${shortJson(made['id'])}, named ${shortJson(made['name'])}, of the create that was answered ${answerOf(exchange)}`,
            shown: list,
          };
    },
    ({ exchange }) => exchange,
  );
}

function isOf(instance: JsonObject, { name, id }: ResourceRecord): boolean {
  return (
    stringField(instance, 'name')?.startsWith(name) === true || (id !== undefined && instance['id'] === id)
  );
}

/** Listed instances without a name that are new and are not in the run's ledger. */
function newNameless(evidence: Evidence, listed: readonly JsonObject[]): JsonObject[] {
  const before = idsIn(evidence.step('refusals/list-before'));
  const known = new Set(evidence.resources.map(({ id }) => id));
  return listed.filter((instance) => {
    const id = stringField(instance, 'id');
    return stringField(instance, 'name') === undefined && !known.has(id) && !before.has(id);
  });
}

function idsIn(list: Exchange): Set<string | undefined> {
  return new Set(objectsField(jsonOf(list), 'instances').map((instance) => stringField(instance, 'id')));
}
