import { readFileSync, writeFileSync } from 'node:fs';
import { parse } from 'yaml';
import { toSentence } from '../../contract/errors.ts';
import { toIssues } from '../../contract/issue-words.ts';
import { Fatal } from '../../ports/errors.ts';
import { CONTROL, ControlError, createControlClient } from '../../sandbox/control/client.ts';
import { toVerdictJunit } from '../../sandbox/verdict/junit.ts';
import { type Baseline, baselineSchema, type Verdict } from '../../sandbox/verdict/verdict.ts';

export type { Verdict } from '../../sandbox/verdict/verdict.ts';
export { findingText, removableOf, summaryOf } from '../../sandbox/verdict/words.ts';

export interface VerdictRequest {
  /** The URL of a sandbox, or that of its control API. */
  control: string;
  /** The key of the control API. */
  key: string;
  account?: string | undefined;
  /** A file of accepted failures. */
  baseline?: string | undefined;
  /** A file to write. */
  junit?: string | undefined;
}

/** Asks a sandbox for its verdict on the client, and writes the report. @throws {Fatal} */
export async function askVerdict({ control, key, account, ...files }: VerdictRequest): Promise<Verdict> {
  const baseline = files.baseline === undefined ? undefined : readBaseline(files.baseline);
  const client = createControlClient({ baseUrl: toBaseUrl(control), key });
  const verdict = await client.verdict({ account, baseline }).catch((error: unknown): never => {
    const reason = error instanceof ControlError ? error.message : causeOf(error);
    throw new Fatal(`The sandbox at ${control} gave no verdict: ${reason}`, { cause: error });
  });
  if (files.junit !== undefined) write(files.junit, toVerdictJunit(verdict));
  return verdict;
}

function toBaseUrl(text: string): string {
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol))
    throw new Fatal(`--control ${text}: give the URL of a sandbox, such as http://127.0.0.1:8099.`);
  return url.href.replace(/\/+$/, '').replace(new RegExp(`${CONTROL}$`), '');
}

function causeOf(error: unknown): string {
  const { cause, message } = error as Error;
  return `${cause instanceof Error ? cause.message : message}.`;
}

/** Reads a baseline in JSON or YAML. */
function readBaseline(file: string): Baseline {
  let data: unknown;
  try {
    data = parse(readFileSync(file, 'utf8'));
  } catch (error) {
    throw new Fatal(`--baseline ${file} cannot be read: ${(error as Error).message}.`, { cause: error });
  }
  const { data: baseline, error } = baselineSchema.safeParse(data);
  if (baseline !== undefined) return baseline;
  throw new Fatal(`--baseline ${file}: ${toIssues({ error, data }).map(toSentence).join('; ')}.`);
}

function write(file: string, text: string): void {
  try {
    writeFileSync(file, text);
  } catch (error) {
    throw new Fatal(`--junit ${file} cannot be written: ${(error as Error).message}.`, { cause: error });
  }
}
