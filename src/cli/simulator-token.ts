import { Fatal } from './fatal.ts';

const MIN_LENGTH = 16;

/**
 * The secret that a `berth simulator` and its callers share, from BERTH_SIMULATOR_TOKEN.
 *
 * @throws {Fatal} if it is none that a header could carry, or could be guessed.
 */
export function readSimulatorToken(env: Readonly<Record<string, string | undefined>>): string | undefined {
  const token = env['BERTH_SIMULATOR_TOKEN'] || undefined;
  if (token !== undefined && (token.length < MIN_LENGTH || !/^[A-Za-z0-9._~+/=-]{1,512}$/.test(token)))
    throw new Fatal(
      `BERTH_SIMULATOR_TOKEN must be ${MIN_LENGTH} to 512 characters of A-Z a-z 0-9 . _ ~ + / = -; make one with \`openssl rand -hex 32\`.`,
    );
  return token;
}
