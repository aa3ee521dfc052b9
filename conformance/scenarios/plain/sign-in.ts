import { isSuccess, statusOf } from '../../transcript/exchange.ts';
import type { Exchange } from '../../transcript/records.ts';
import type { Session } from '../session.ts';

/** Exchanges a login for an access token, as a marketplace does that has no API key. */
export async function signIn({ client, signIn, signal }: Session): Promise<void> {
  const { apiKey, login } = signIn;
  if (apiKey !== undefined || login === undefined) return;
  await client.requestAccessToken('token/good', { ...login }, signal);
  client.preferAccessToken();
}

/** Exchanges a refused API key for a token. False if the key was not refused, or there is no token for it. */
export async function exchangeRefusedKey(
  { client, signIn, signal }: Session,
  read: Exchange,
): Promise<boolean> {
  if (statusOf(read) !== 401 || read.credential !== 'api key' || signIn.apiKey === undefined) return false;
  const answer = await client.requestAccessToken('token/good', { api_key: signIn.apiKey }, signal);
  if (!isSuccess(answer)) return false;
  client.preferAccessToken();
  return true;
}
