import { Fatal } from '../ports/errors.ts';

const MIN_LENGTH = 16;

/**
 * Reads a secret from the environment; undefined: the variable is unset or empty.
 *
 * @throws {Fatal} if the secret cannot be sent in a header, or is too short
 */
export function readSecret(
  env: Readonly<Record<string, string | undefined>>,
  name: string,
): string | undefined {
  const secret = env[name] || undefined;
  if (secret !== undefined && (secret.length < MIN_LENGTH || !/^[A-Za-z0-9._~+/=-]{1,512}$/.test(secret)))
    throw new Fatal(
      `${name} must be ${MIN_LENGTH} to 512 characters of A-Z a-z 0-9 . _ ~ + / = -; make one with \`openssl rand -hex 32\`.`,
    );
  return secret;
}
