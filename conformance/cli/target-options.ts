import { readFileSync } from 'node:fs';
import type { Command } from 'commander';
import { readBaseUrl } from '../doctor/base-url.ts';
import { type FoundKey, type KeySource, missingKey, readApiKey, readLogin } from '../doctor/credentials.ts';
import { config, type Diagnosis, toClause } from '../doctor/diagnosis.ts';
import type { SignIn } from '../http/sign-in.ts';
import type { Transport } from '../http/transport.ts';
import { closestMatch, systemErrorText } from '../text/wording.ts';
import type { Credential } from '../transcript/records.ts';
import type { CliParts } from './parts.ts';
import { CommandError, NAME, refuseKeyOptions } from './program.ts';

/** The options that name the target's credentials. */
export interface TargetFlags {
  apiKeyFile?: string;
  caFile?: string;
}

export function withTarget(command: Command): Command {
  refuseKeyOptions(command);
  return command
    .option(
      '--api-key-file <file>',
      'file with the API key; default: BERTH_API_KEY, or BERTH_USERNAME and BERTH_PASSWORD',
    )
    .option('--ca-file <file>', 'PEM certificate of an additional authority to trust');
}

function keySource({ apiKeyFile }: TargetFlags, env: CliParts['env']): KeySource {
  return { file: apiKeyFile, fileOption: '--api-key-file', variable: 'BERTH_API_KEY', env };
}

export function secondKeySource(
  { secondApiKeyFile }: { secondApiKeyFile?: string },
  { env }: CliParts,
): KeySource {
  return {
    file: secondApiKeyFile,
    fileOption: '--second-api-key-file',
    variable: 'BERTH_SECOND_API_KEY',
    env,
  };
}

export function otherAccountSource(
  { otherAccountKeyFile }: { otherAccountKeyFile?: string },
  { env }: CliParts,
): KeySource {
  return {
    file: otherAccountKeyFile,
    fileOption: '--other-account-key-file',
    variable: 'BERTH_OTHER_ACCOUNT_KEY',
    env,
  };
}

/** Parses the base URL and returns notes about it. Throws `CommandError`. */
export function requireBaseUrl(
  typed: string,
  commands: readonly string[],
): { baseUrl: string; notes: Diagnosis[] } {
  const { baseUrl, diagnoses } = readBaseUrl(typed);
  if (baseUrl !== undefined) return { baseUrl, notes: diagnoses };
  const meant = /[.:/]/.test(typed) ? undefined : closestMatch(typed, commands);
  if (meant !== undefined)
    throw new CommandError(`there is no command ${typed}: did you mean \`${NAME} ${meant}\`?`);
  throw new CommandError(diagnoses.map(toClause).join('; '));
}

/** Reads the available credentials, and registers them as secrets of the terminal. */
export function findSignIn(
  flags: TargetFlags,
  { env, terminal }: CliParts,
): { signIn: SignIn; diagnoses: Diagnosis[] } {
  const source = keySource(flags, env);
  const { key: apiKey, diagnoses: ofKey } = keep(readApiKey(source), 'api key', terminal);
  const { login, diagnoses: ofLogin } = readLogin(env);
  if (login !== undefined) terminal.secrets.add('password', login.password);
  const found = [...ofKey, ...ofLogin];
  const isMissing = apiKey === undefined && login === undefined && found.length === 0;
  return { signIn: { apiKey, login }, diagnoses: isMissing ? [missingKey(source)] : found };
}

/** As `findSignIn`, but throws `CommandError` if credentials are missing or invalid. */
export function requireSignIn(flags: TargetFlags, parts: CliParts): { signIn: SignIn; notes: Diagnosis[] } {
  const { signIn, diagnoses } = findSignIn(flags, parts);
  const fault = diagnoses.find(({ state }) => state === 'config');
  if (fault !== undefined) throw new CommandError(toClause(fault));
  return { signIn, notes: diagnoses };
}

/** Reads a further key, if there is one. Throws `CommandError`. */
export function findKey(name: Credential, source: KeySource, { terminal }: CliParts): FoundKey {
  const found = keep(readApiKey(source), name, terminal);
  const fault = found.diagnoses.find(({ state }) => state === 'config');
  if (fault !== undefined) throw new CommandError(toClause(fault));
  return found;
}

function keep(found: FoundKey, name: string, terminal: CliParts['terminal']): FoundKey {
  if (found.key !== undefined) terminal.secrets.add(name, found.key);
  return found;
}

/** Creates the HTTP transport of a usual or a plain run. Throws `CommandError` if the file of `--ca-file` cannot be used. */
export function openTransport({ caFile, plain }: TargetFlags & { plain?: true }, parts: CliParts): Transport {
  const options = { plain };
  if (caFile === undefined) return parts.createTransport(options);
  try {
    return parts.createTransport({ ...options, ca: readFileSync(caFile, 'utf8') });
  } catch (error) {
    const { text, fix } = config(
      'TLS',
      `--ca-file ${caFile} cannot be used (${systemErrorText(error)})`,
      'name a file with a certificate in PEM',
    );
    throw new CommandError(`${text}: ${fix}`);
  }
}
