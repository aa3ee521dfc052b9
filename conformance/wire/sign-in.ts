import type { TranscriptRecord } from '../transcript/records.ts';

/** A user name and a password, for which a target gives an access token (O: Authentication 3, 5). */
export interface Login {
  username: string;
  password: string;
}

/** With what a run gets in: an API key, a login or both. */
export interface SignIn {
  apiKey?: string | undefined;
  login?: Login | undefined;
}

/** The body of POST /auth/token. Which of its fields belong together is not shown in O:. */
export interface TokenRequest {
  api_key?: string;
  username?: string;
  password?: string;
}

/** With what an access token can be asked for, in the order in which it is tried. */
export function tokenRequests({ apiKey, login }: SignIn): TokenRequest[] {
  return [
    ...(apiKey === undefined ? [] : [{ api_key: apiKey }]),
    ...(login === undefined ? [] : [{ ...login }]),
  ];
}

/** A user name is told to the token endpoint alone. It may be a word like any other, so that it is taken out there only. */
export function withoutUsername(record: TranscriptRecord, login: Login | undefined): TranscriptRecord {
  if (login === undefined || record.kind !== 'exchange' || record.request.path !== '/auth/token')
    return record;
  const hide = (text: string): string =>
    text.replaceAll(JSON.stringify(login.username).slice(1, -1), '[redacted: username]');
  const hideIn = (headers: Readonly<Record<string, string>>): Record<string, string> =>
    Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, hide(value)]));
  const { request, answer } = record;
  return {
    ...record,
    request: { ...request, ...(request.body !== undefined && { body: hide(request.body) }) },
    ...(answer && { answer: { ...answer, headers: hideIn(answer.headers), body: hide(answer.body) } }),
  };
}
