import { type ShapeName, type ShapeProblem, shapeProblems } from '../../contract/shapes.ts';
import type { Evidence } from '../../evidence/evidence.ts';
import {
  type Finding,
  judgeEach,
  judgeEachExchange,
  notApplicable,
  refuseTooLong,
} from '../../evidence/finding.ts';
import { hasGoodCredential } from '../../evidence/instances.ts';
import type { SeenObject } from '../../evidence/objects.ts';
import { hasField, isObject, objectsField } from '../../text/json.ts';
import { listed, shortJson } from '../../text/wording.ts';
import { isSuccess, jsonOf } from '../../transcript/exchange.ts';
import type { Exchange } from '../../transcript/records.ts';
import { type Check, listProblem } from '../check.ts';

const ofOffers = { level: 'read-only', scenarios: ['catalog'] } as const;
const ofInstances = { level: 'lifecycle', scenarios: ['create', 'boot', 'online'] } as const;

export const fieldChecks: readonly Check[] = [
  {
    id: 'CFG-FIELD-001',
    ...ofOffers,
    judge: (evidence) => judgeOffers(evidence, 'every required field, of its type', isOfRequired),
  },
  {
    id: 'CFG-FIELD-002',
    ...ofOffers,
    judge: (evidence) => judgeOffers(evidence, 'optional fields of their type, or left out', isOfOptional),
  },
  {
    id: 'CFG-NULL-001',
    ...ofOffers,
    judge: (evidence) => judgeOffers(evidence, 'optional fields without a value left out', isNull),
  },
  {
    id: 'CFG-TYPE-001',
    ...ofOffers,
    judge: (evidence) => judgeOffers(evidence, 'SPOT, DEDICATED, BARE_METAL or CLUSTER', isOfValue),
  },
  {
    id: 'INS-FIELD-001',
    ...ofInstances,
    judge: (evidence) => judgeInstances(evidence, 'every required field, of its type', isOfRequired),
  },
  {
    id: 'INS-FIELD-002',
    ...ofInstances,
    judge: (evidence) =>
      judgeInstances(
        evidence,
        'optional fields of their type, or left out',
        (problem) => isOfOptional(problem) && problem.field !== 'port_forwards',
      ),
  },
  {
    id: 'INS-NULL-001',
    ...ofInstances,
    judge: (evidence) => judgeInstances(evidence, 'optional fields without a value left out', isNull),
  },
  {
    id: 'INS-FIELD-003',
    ...ofInstances,
    judge: (evidence) => judgeInstances(evidence, 'one of the eight statuses of the contract', isOfValue),
  },
  { id: 'INS-FIELD-004', ...ofInstances, judge: judgePortForwards },
  { id: 'INS-LIST-001', level: 'read-only', scenarios: ['list'], judge: judgeList },
  { id: 'INS-LIST-002', level: 'lifecycle', scenarios: ['list-by-region'], judge: judgeRegionFilter },
];

function isOfRequired({ isRequired, fault }: ShapeProblem): boolean {
  return isRequired && fault !== 'value';
}

function isOfOptional({ isRequired, fault }: ShapeProblem): boolean {
  return !isRequired && fault !== 'null';
}

/**
 * The contract does not mention null. A strict reader may treat an optional field that is null as one of a wrong
 * type.
 */
export function isNull({ fault }: ShapeProblem): boolean {
  return fault === 'null';
}

function isOfValue({ fault }: ShapeProblem): boolean {
  return fault === 'value';
}

function judgeOffers(
  evidence: Evidence,
  expected: string,
  isLooked: (problem: ShapeProblem) => boolean,
): Finding {
  evidence.steps('catalog/configurations');
  return judgeObjects('Configuration', evidence.objects.configurations, 'offers', expected, isLooked);
}

function judgeInstances(
  evidence: Evidence,
  expected: string,
  isLooked: (problem: ShapeProblem) => boolean,
): Finding {
  evidence.steps('create/post');
  return judgeObjects('Instance', evidence.objects.instances, 'instances in answers', expected, isLooked);
}

/** Judges objects by their table of fields; each object's problems become one sentence. */
export function judgeObjects(
  shape: ShapeName,
  objects: readonly SeenObject[],
  what: string,
  expected: string,
  isLooked: (problem: ShapeProblem) => boolean,
): Finding {
  return judgeEach(
    objects,
    what,
    ({ value, at }) => {
      const problems = shapeProblems(shape, value).filter(isLooked);
      if (problems.length === 0) return undefined;
      const id = isObject(value) && value['id'] !== undefined ? ` (id ${shortJson(value['id'])})` : '';
      const faults = problems.map(({ path, problem }) => `${path === '' ? 'it' : path} ${problem}`);
      return { expected, actual: `${at === '' ? 'the body' : at}${id}: ${listed(faults)}` };
    },
    ({ exchange }) => exchange,
  );
}

function judgePortForwards(evidence: Evidence): Finding {
  evidence.steps('create/post');
  const forwarded = evidence.objects.instances.filter(({ value }) => hasField(value, 'port_forwards'));
  if (forwarded.length === 0)
    return notApplicable('port forwards', 'no instance was shown with port_forwards');
  return judgeObjects(
    'Instance',
    forwarded,
    'instances with port_forwards',
    'a list of {internal_port, external_port}, both integers',
    ({ field }) => field === 'port_forwards',
  );
}

function lists(evidence: Evidence): Exchange[] {
  return evidence.exchanges.filter(
    (exchange) =>
      exchange.request.method === 'GET' &&
      /^\/instances(\?|$)/.test(exchange.request.path) &&
      hasGoodCredential(exchange) &&
      exchange.answer !== undefined &&
      exchange.answer.status !== 429,
  );
}

function judgeList(evidence: Evidence): Finding {
  evidence.steps('list/all');
  // Whether a token is valid for the list is another check; the clean-up may follow a ban.
  const known = lists(evidence).filter(
    ({ step }) => step !== 'list-by-region/other' && !/^(token|cleanup)\//.test(step),
  );
  if (known.length === 0) refuseTooLong(evidence.steps('list/all'));
  return judgeEachExchange(known, 'reads of the list', (exchange) => listProblem(exchange, 'instances'));
}

function judgeRegionFilter(evidence: Evidence): Finding {
  evidence.steps('list-by-region/other');
  const filtered = lists(evidence).filter((exchange) => isSuccess(exchange) && regionOf(exchange) !== null);
  if (filtered.length === 0) refuseTooLong(evidence.exchanges);
  return judgeEachExchange(filtered, 'lists of one region', (exchange) => {
    const region = regionOf(exchange);
    const strange = objectsField(jsonOf(exchange), 'instances').filter(
      (instance) => instance['region'] !== region,
    );
    if (strange.length === 0) return undefined;
    const [one] = strange;
    return {
      expected: `instances in ${shortJson(region)} only`,
      actual: `${strange.length} elsewhere, such as ${shortJson(one?.['id'])} in ${shortJson(one?.['region'])}`,
    };
  });
}

function regionOf({ request }: Exchange): string | null {
  return new URLSearchParams(request.path.split('?')[1]).get('region');
}
