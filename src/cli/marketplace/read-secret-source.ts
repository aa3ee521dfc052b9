import { readFileSync } from 'node:fs';
import { fileProblem } from '../../store/sqlite/database-refused.ts';
import { Fatal } from '../fatal.ts';

/** Where a secret is: in an environment variable or in a file. */
export interface SecretSource {
  env?: string | undefined;
  file?: string | undefined;
}

/**
 * A secret that the configuration says where to find. No message has any of it.
 *
 * @throws {Fatal} if it is not there, or is empty; `what` says what it is for
 */
export function readSecretSource(
  { env: variable, file }: SecretSource,
  env: Readonly<Record<string, string | undefined>>,
  what: string,
): string {
  const secret = (variable === undefined ? readFile(file ?? '', what) : (env[variable] ?? '')).trim();
  if (secret !== '') return secret;
  throw new Fatal(
    variable === undefined
      ? `The file ${file} is empty, and should hold ${what}.`
      : `The environment variable ${variable} is not set, and should hold ${what}.`,
  );
}

function readFile(file: string, what: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new Fatal(`The file ${file} cannot be read (${fileProblem(error)}), and should hold ${what}.`, {
      cause: error,
    });
  }
}
