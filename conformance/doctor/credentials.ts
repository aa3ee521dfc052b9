import { readFileSync, statSync } from 'node:fs';
import type { Login } from '../http/sign-in.ts';
import { systemErrorText } from '../text/wording.ts';
import { config, type Diagnosis, note } from './diagnosis.ts';

const MAX_FILE_BYTES = 64 * 1024;
const SHORT = 8;

export interface KeySource {
  /** `--api-key-file`; overrides the variable. */
  file?: string | undefined;
  fileOption: string;
  variable: string;
  env: Readonly<Record<string, string | undefined>>;
}

export interface FoundKey {
  key?: string;
  diagnoses: Diagnosis[];
}

/** Reads the API key. Diagnoses never contain it. */
export function readApiKey(source: KeySource): FoundKey {
  const { file, variable, env, fileOption } = source;
  if (file !== undefined) return readKeyFile(file, fileOption);
  const text = env[variable];
  if (text !== undefined) return inspect(text, variable);
  return { diagnoses: [] };
}

/** The diagnosis for a missing key. */
export function missingKey({ variable, fileOption }: KeySource): Diagnosis {
  return config(
    'API key',
    'there is no API key',
    `put it in ${variable}, or into a file that you name with ${fileOption}; where a login is exchanged for a token, set BERTH_USERNAME and BERTH_PASSWORD`,
  );
}

function readKeyFile(file: string, option: string): FoundKey {
  try {
    const { size, mode } = statSync(file);
    if (size > MAX_FILE_BYTES)
      return refuse(`${option} ${file} is too large to hold a key`, 'name another file');
    const found = inspect(readFileSync(file, 'utf8'), `${option} ${file}`);
    if (found.key !== undefined && process.platform !== 'win32' && (mode & 0o077) !== 0)
      found.diagnoses.push(note('API key', `others on this machine can read ${file}`, `chmod 600 ${file}`));
    return found;
  } catch (error) {
    return refuse(
      `${option} ${file} cannot be read (${systemErrorText(error)})`,
      'name a file that holds the key and nothing else',
    );
  }
}

function inspect(text: string, where: string): FoundKey {
  // Editors and `echo` end a file with a line break.
  const key = text.replace(/[\r\n]+$/, '');
  const fault = faultOf(key);
  if (fault !== undefined) return refuse(`the API key in ${where} ${fault.what}`, fault.fix);
  const isShort = key.length < SHORT;
  const said = `the API key in ${where} has only ${key.length} characters`;
  return { key, diagnoses: isShort ? [note('API key', said, 'is it whole?')] : [] };
}

function faultOf(key: string): { what: string; fix: string } | undefined {
  if (key.trim() === '') return { what: 'is empty', fix: 'put the key there and nothing else' };
  if (/^(authorization:\s*)?bearer\s/i.test(key))
    return { what: 'begins with "Bearer "', fix: 'leave that out: it is added when the key is sent' };
  if (/[\r\n]/.test(key)) return { what: 'has a line break inside', fix: 'put the key there on one line' };
  if (/^(["']).*\1$/.test(key)) return { what: 'is in quotes', fix: 'leave them out' };
  if (/^[A-Z][A-Z0-9_]+=[^=]/.test(key))
    return { what: 'is an assignment (NAME=value)', fix: 'put the value there alone' };
  if (/\s/.test(key)) return { what: 'has a blank at an end or inside', fix: 'take it out' };
  if (/[^\x21-\x7e]/.test(key))
    return {
      what: 'has characters that a header cannot carry (an invisible one, perhaps, that was copied along)',
      fix: 'copy it again',
    };
  return undefined;
}

function refuse(text: string, fix: string): FoundKey {
  return { diagnoses: [config('API key', text, fix)] };
}

const USERNAME_VARIABLE = 'BERTH_USERNAME';
const PASSWORD_VARIABLE = 'BERTH_PASSWORD';

export interface FoundLogin {
  login?: Login;
  diagnoses: Diagnosis[];
}

/** Reads the user name and password for POST /auth/token. Diagnoses contain neither. */
export function readLogin(env: Readonly<Record<string, string | undefined>>): FoundLogin {
  const username = env[USERNAME_VARIABLE] ?? '';
  const password = env[PASSWORD_VARIABLE] ?? '';
  if (username === '' && password === '') return { diagnoses: [] };
  if (username !== '' && password !== '') return { login: { username, password }, diagnoses: [] };
  const [given, missing] =
    password === '' ? [USERNAME_VARIABLE, PASSWORD_VARIABLE] : [PASSWORD_VARIABLE, USERNAME_VARIABLE];
  return {
    diagnoses: [
      config('Login', `${given} is set, and ${missing} is not`, `set ${missing} too, or neither of them`),
    ],
  };
}
