import { readFileSync } from 'node:fs';
import { Fatal, fileProblem } from '../../ports/errors.ts';

/**
 * Reads a secret from a variable, or from the file that VARIABLE_FILE names. No message contains any part of it.
 * @throws {Fatal} if it is missing or empty; `what` describes its use
 */
export function readSecretOf(
  variable: string | undefined,
  env: Readonly<Record<string, string | undefined>>,
  what: string,
): string {
  const given = variable && env[variable];
  const file = env[`${variable}_FILE`];
  const secret = (given || (file ? readFile(file, what) : '')).trim();
  if (secret !== '') return secret;
  throw new Fatal(
    file && !given
      ? `The file ${file} is empty, and should hold ${what}.`
      : `The environment variable ${variable} is not set, and should hold ${what}; or ${variable}_FILE the path of a file with it.`,
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
