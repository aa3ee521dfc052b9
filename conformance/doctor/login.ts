import type { Login } from '../wire/sign-in.ts';
import { config, type Diagnosis } from './diagnosis.ts';

const USERNAME_VARIABLE = 'BERTH_USERNAME';
const PASSWORD_VARIABLE = 'BERTH_PASSWORD';

export interface FoundLogin {
  login?: Login;
  diagnoses: Diagnosis[];
}

/** Reads the user name and the password for POST /auth/token. Neither is repeated in what is said about them. */
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
