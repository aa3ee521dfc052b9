import type { Evidence } from '../evidence/evidence.ts';
import type { Exchange } from '../transcript/records.ts';
import { each, type Finding, notTested, type Problem } from '../verdict/finding.ts';
import { answerOf, inShort } from '../verdict/words.ts';
import { isSuccess, successOf, textField } from '../wire/json.ts';
import { unlimited } from './answered.ts';
import type { Check } from './check.ts';

export const nameChecks: readonly Check[] = [
  { id: 'NAME-DUP-001', level: 'full', scenarios: ['companion'], judge: judgeSameName },
];

function judgeSameName(evidence: Evidence): Finding {
  const asked = evidence.step('companion/create');
  if (isSuccess(asked)) return each([asked], 'creates with a name that is taken', () => both(evidence), same);
  const [control] = evidence.anySteps('companion/control');
  if (control === undefined || !isSuccess(control))
    return notTested(
      `the create was answered ${answerOf(asked)}, and so, with another name, was the same create: ${control === undefined ? 'not sent' : answerOf(control)}`,
    );
  const [again] = unlimited(evidence.steps('companion/create-again'));
  return each(
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

/** The second is another instance than the first, by its create and by the reads of both. */
function both(evidence: Evidence): Problem[] {
  const create = evidence.step('companion/create');
  const [read, readFirst] = [evidence.step('companion/read'), evidence.step('companion/read-first')];
  const [first = ''] = readFirst.request.path.split('?')[0]?.split('/').slice(2) ?? [];
  if (textField(successOf(create), 'id') === decodeURIComponent(first))
    return [{ expected: 'an id of its own', actual: `${first}, which is the first instance`, shown: create }];
  const shown = textField(successOf(read), 'id');
  return shown !== undefined && shown === textField(successOf(readFirst), 'id')
    ? [{ expected: 'an instance of its own', actual: `both ids read as ${inShort(shown)}`, shown: read }]
    : [];
}
