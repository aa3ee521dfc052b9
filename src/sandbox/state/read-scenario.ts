import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { type Issue, toSentence } from '../../contract/errors.ts';
import { toIssues } from '../../contract/issue-words.ts';
import { Fatal } from '../../ports/errors.ts';
import { type Scenario, scenarioSchema } from './scenario-format.ts';

/** Parses a scenario in YAML, which includes JSON. Returns the scenario or its problems. */
export function parseScenario(text: string): { scenario: Scenario } | { issues: Issue[] } {
  let data: unknown;
  try {
    data = parse(text);
  } catch (error) {
    return { issues: [{ path: '', message: (error as Error).message }] };
  }
  const { data: scenario, error } = scenarioSchema.safeParse(data);
  return scenario === undefined ? { issues: toIssues({ error, data }) } : { scenario };
}

/** @throws {Fatal} if the file cannot be read, or is not a scenario */
export function readScenario(file: string): Scenario {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    throw new Fatal(`The scenario ${file} cannot be read: ${(error as Error).message}.`, { cause: error });
  }
  const read = parseScenario(text);
  if ('scenario' in read) return read.scenario;
  throw new Fatal(`${file} is not a valid scenario: ${read.issues.map(toSentence).join('; ')}.`);
}
