import type { Evidence } from '../evidence/evidence.ts';
import { duration } from '../evidence/instance-life.ts';
import type { Exchange } from '../transcript/records.ts';
import { each, eachExchange, notTested } from '../verdict/finding.ts';
import { isObject, parseJson, statusOf, successOf, textField } from '../wire/json.ts';
import type { Check } from './check.ts';
import { roundTripMs } from './round-trip.ts';

/** Within this a create that waits for no boot is answered. */
const CREATE_LIMIT_MS = 5000;

const scenarios = ['create'];

/** The creates that were valid and were not refused for capacity. */
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
      return eachExchange(asked, 'valid creates', (exchange) =>
        statusOf(exchange) === 201
          ? undefined
          : { expected: '201, with the instance', actual: describeAnswer(exchange) },
      );
    },
  },
  {
    id: 'INS-CREATE-002',
    level: 'lifecycle',
    scenarios,
    judge: (evidence) =>
      eachExchange(created(evidence), 'creates that were accepted', (exchange) => {
        const status = textField(successOf(exchange), 'status');
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
      return eachExchange(created(evidence), 'creates that were accepted', (exchange) => {
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
      each(
        evidence.instances.flatMap(({ created: post, sightings }) =>
          sightings.flatMap(({ exchange, instance }) =>
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

/** The answer in short: its status and the error's code. */
export function describeAnswer(exchange: Exchange): string {
  const { answer, failure } = exchange;
  if (answer === undefined) return `no answer: ${failure?.message}`;
  const body = parseJson(answer.body);
  const error = isObject(body) ? body['error'] : undefined;
  const code = textField(error, 'code');
  const status = textField(body, 'status');
  if (code !== undefined) return `${answer.status} ${code}`;
  return status === undefined ? `${answer.status}` : `${answer.status} with status ${status}`;
}
