import { randomUUID } from 'node:crypto';
import { suiteVersion } from '../contract/package.ts';
import { LONGEST_LIST_BYTES } from '../http/call.ts';
import { type SignIn, tokenRequests } from '../http/sign-in.ts';
import type { HttpAnswer, HttpFailure, Transport } from '../http/transport.ts';
import { isObject, parseJson, stringField } from '../text/json.ts';

export interface ProbeParts extends SignIn {
  transport: Transport;
  timeoutMs: number;
  signal: AbortSignal;
}

/** The outcome of one request, with its body as JSON. */
export interface Probe {
  url: string;
  answer?: HttpAnswer;
  failure?: HttpFailure;
  /** Undefined if the body is not JSON. */
  json: unknown;
}

export async function probe(parts: ProbeParts, url: string, bearer = parts.apiKey): Promise<Probe> {
  const sent = Object.assign(headers(), bearer !== undefined && { authorization: `Bearer ${bearer}` });
  return send(parts, { method: 'GET', url, headers: sent });
}

export interface FoundToken {
  token: string;
  /** Whether it was issued for the API key, not for the login. */
  isOfKey: boolean;
}

/** Requests an access token with the key or the login. Undefined if neither yields one. Creates nothing. */
export async function requestToken(parts: ProbeParts, baseUrl: string): Promise<FoundToken | undefined> {
  for (const request of tokenRequests(parts)) {
    const { json, answer } = await send(parts, {
      method: 'POST',
      url: `${baseUrl}/auth/token`,
      headers: { ...headers(), 'content-type': 'application/json' },
      body: JSON.stringify(request),
    });
    const token = answer?.status === 200 ? stringField(json, 'access_token') : undefined;
    if (token !== undefined) return { token, isOfKey: request.api_key !== undefined };
  }
  return undefined;
}

async function send(
  { transport, timeoutMs, signal }: ProbeParts,
  request: Parameters<Transport['send']>[0],
): Promise<Probe> {
  const result = await transport.send(request, { timeoutMs, maxBodyBytes: LONGEST_LIST_BYTES, signal });
  signal.throwIfAborted();
  if ('failure' in result) return { url: request.url, failure: result, json: undefined };
  return { url: request.url, answer: result, json: parseJson(result.body) };
}

function headers(): Record<string, string> {
  return {
    accept: 'application/json',
    'user-agent': `berth-conformance/${suiteVersion} doctor`,
    'x-request-id': randomUUID(),
  };
}

/** Whether a body is `{ error: { code, message } }`. */
export function isEnvelope(json: unknown): boolean {
  const error = isObject(json) ? json['error'] : undefined;
  return stringField(error, 'code') !== undefined;
}

/** Whether the answer is an HTML page. */
export function isPage({ answer }: Probe): boolean {
  if (answer === undefined) return false;
  return (
    /text\/html/i.test(answer.headers['content-type'] ?? '') || /^\s*<(!doctype|html)/i.test(answer.body)
  );
}
