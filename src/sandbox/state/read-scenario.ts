import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { toSentence } from '../../contract/errors.ts';
import { toIssues } from '../../contract/issue-words.ts';
import { Fatal } from '../../ports/errors.ts';
import { type Scenario, scenarioSchema } from './scenario-format.ts';

/** Reads a file in YAML, which includes JSON. @throws {Fatal} if the file cannot be read, or is not a scenario */
export function readScenario(file: string): Scenario {
  let data: unknown;
  try {
    data = parse(readFileSync(file, 'utf8'));
  } catch (error) {
    throw new Fatal(`The scenario ${file} cannot be read: ${(error as Error).message}.`, { cause: error });
  }
  const { data: scenario, error } = scenarioSchema.safeParse(data);
  if (scenario !== undefined) return scenario;
  throw new Fatal(
    `${file} is not a valid scenario: ${toIssues({ error, data }).map(toSentence).join('; ')}.`,
  );
}
