import { eachExchange } from '../verdict/finding.ts';
import { statusOf } from '../wire/json.ts';
import type { Check } from './check.ts';
import { describeAnswer } from './create.ts';

/** What a bad credential reads of an instance that lives. */
export const liveInstanceChecks: readonly Check[] = [
  {
    id: 'AUTH-LIVE-001',
    level: 'lifecycle',
    scenarios: ['online'],
    judge: (evidence) =>
      eachExchange(
        evidence.steps('online/no-credential', 'online/wrong-credential', 'online/wrong-credential-unknown'),
        'reads without a good credential',
        (exchange) =>
          statusOf(exchange) === 401
            ? undefined
            : {
                expected: '401; a 404 would be taken for DESTROYED when a key is lost',
                actual: describeAnswer(exchange),
              },
      ),
  },
];
