import type { Evidence } from '../../evidence/evidence.ts';
import {
  type Finding,
  judgeEach,
  judgeEachExchange,
  notTested,
  type Problem,
} from '../../evidence/finding.ts';
import { isObject, parseJson, stringField } from '../../text/json.ts';
import { duration, shortJson } from '../../text/wording.ts';
import { answerOf, isSuccess, statusOf, successOf } from '../../transcript/exchange.ts';
import type { Exchange } from '../../transcript/records.ts';
import { type Check, withoutRateLimited } from '../check.ts';
import { roundTripMs } from './polled-read.ts';

/** A create that does not wait for the boot is answered within this time. */
const CREATE_LIMIT_MS = 5000;

const scenarios = ['create'];

/** The valid creates that were not refused for lack of capacity. */
function accepted(evidence: Evidence): Exchange[] {
  return evidence.steps('create/post').filter((exchange) => statusOf(exchange) !== 409);
}

export const createChecks: readonly Check[] = [
  {
    id: 'INS-CREATE-001',
    level: 'lifecycle',
    scenarios,
    judge: (evidence) => {
      const asked = accepted(evidence);
      if (asked.length === 0) return notTested('every create was refused with 409: there was no capacity');
      return judgeEachExchange(asked, 'valid creates', (exchange) =>
        statusOf(exchange) === 201
          ? undefined
          : { expected: '201, with the instance', actual: answerOf(exchange) },
      );
    },
  },
  {
    id: 'INS-CREATE-002',
    level: 'lifecycle',
    scenarios,
    judge: (evidence) =>
      judgeEachExchange(created(evidence), 'creates that were accepted', (exchange) => {
        const status = stringField(successOf(exchange), 'status');
        return status === 'PROVISIONING'
          ? undefined
          : { expected: 'status PROVISIONING', actual: `status ${status ?? 'absent'}` };
      }),
  },
  {
    id: 'INS-CREATE-003',
    level: 'lifecycle',
    scenarios,
    judge: (evidence) => {
      const roundTrip = roundTripMs(evidence.run);
      return judgeEachExchange(created(evidence), 'creates that were accepted', (exchange) => {
        const ms = (exchange.answer?.firstByteMs ?? 0) - roundTrip;
        return ms <= CREATE_LIMIT_MS
          ? undefined
          : {
              expected: `an answer within ${duration(CREATE_LIMIT_MS)}, without waiting for the boot`,
              actual: `it took ${duration(ms)}, the round trip of ${duration(roundTrip)} taken off`,
            };
      });
    },
  },
  {
    id: 'INS-CREATE-004',
    level: 'lifecycle',
    scenarios,
    judge: (evidence) =>
      judgeEach(
        evidence.instances.flatMap(({ created: post, observations }) =>
          observations.flatMap(({ exchange, instance }) =>
            post === undefined || instance === undefined ? [] : [{ post, exchange, instance }],
          ),
        ),
        'reads of instances that the run made',
        ({ post, instance }) => {
          const body = parseJson(post.request.body);
          const wanted = isObject(body) ? body : {};
          return ['configuration_id', 'region'].flatMap((field) =>
            instance[field] === wanted[field]
              ? []
              : [
                  {
                    expected: `${field} ${JSON.stringify(wanted[field])}, as it was asked for`,
                    actual: `${field} ${JSON.stringify(instance[field])}`,
                  },
                ],
          );
        },
        ({ exchange }) => exchange,
      ),
  },
];

/** Every create of the run that was answered with an instance. */
function created(evidence: Evidence): Exchange[] {
  return evidence.instances.flatMap((timeline) => timeline.created ?? []);
}

export const nameChecks: readonly Check[] = [
  { id: 'NAME-DUP-001', level: 'full', scenarios: ['companion'], judge: judgeSameName },
];

function judgeSameName(evidence: Evidence): Finding {
  const asked = evidence.step('companion/create');
  if (isSuccess(asked))
    return judgeEach([asked], 'creates with a name that is taken', () => both(evidence), same);
  const [control] = evidence.anySteps('companion/control');
  if (control === undefined || !isSuccess(control))
    return notTested(
      `the create was answered ${answerOf(asked)}, and so, with another name, was the same create: ${control === undefined ? 'not sent' : answerOf(control)}`,
    );
  const [again] = withoutRateLimited(evidence.steps('companion/create-again'));
  return judgeEach(
    again === undefined ? [] : [again],
    'creates with a name that is taken',
    (exchange) =>
      isSuccess(exchange)
        ? undefined
        : {
            expected:
              '201: the same create with another name was accepted, so the name is to be changed and not refused',
            actual: `${answerOf(asked)}, and ${answerOf(exchange)} when it was asked for again`,
          },
    same,
  );
}

const same = (exchange: Exchange): Exchange => exchange;

/** The second create made a different instance, by its answer and by the reads of both. */
function both(evidence: Evidence): Problem[] {
  const create = evidence.step('companion/create');
  const [read, readFirst] = [evidence.step('companion/read'), evidence.step('companion/read-first')];
  const [first = ''] = readFirst.request.path.split('?')[0]?.split('/').slice(2) ?? [];
  if (stringField(successOf(create), 'id') === decodeURIComponent(first))
    return [{ expected: 'an id of its own', actual: `${first}, which is the first instance`, shown: create }];
  const shown = stringField(successOf(read), 'id');
  return shown !== undefined && shown === stringField(successOf(readFirst), 'id')
    ? [{ expected: 'an instance of its own', actual: `both ids read as ${shortJson(shown)}`, shown: read }]
    : [];
}
