import { isLoopback } from '../text/loopback.ts';
import { config, type Diagnosis, note, ok } from './diagnosis.ts';

const SUBJECT = 'base_url';

export interface BaseUrl {
  /** Without a trailing slash; undefined if it is invalid. */
  baseUrl?: string;
  diagnoses: Diagnosis[];
}

/** Parses the base URL. Parts of it that may be secret are not repeated. */
export function readBaseUrl(typed: string): BaseUrl {
  const text = typed.trim();
  if (!/^[a-z][a-z0-9+.-]*:\/\//i.test(text)) {
    const [host] = /^[\w.-]+(:\d+)?(\/\S*)?$/.exec(text) ?? ['<host>/v1'];
    return refuse('the base_url does not begin with https://', `write https://${host}`);
  }
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined) return refuse('the base_url is not a URL', 'write https://<host>/v1');
  if (url.protocol !== 'https:' && url.protocol !== 'http:')
    return refuse(`the base_url begins with ${url.protocol}//`, 'write https://<host>/v1');
  if (url.username !== '' || url.password !== '')
    return refuse(
      'the base_url has a user name or a password in it',
      'leave them out: the key comes from BERTH_API_KEY or --api-key-file',
    );
  if (url.search !== '' || url.hash !== '')
    return refuse('the base_url has a query or a fragment', `write ${url.origin}${url.pathname}`);
  const baseUrl = `${url.origin}${url.pathname.replace(/\/+$/, '')}`;
  return { baseUrl, diagnoses: [ok(SUBJECT, baseUrl), ...notesOn(url)] };
}

function refuse(text: string, fix: string): BaseUrl {
  return { diagnoses: [config(SUBJECT, text, fix)] };
}

function notesOn({ protocol, hostname }: URL): Diagnosis[] {
  if (protocol === 'https:' || isLoopback(hostname)) return [];
  const text = 'the base_url is plain http, so that the API key can be read on its way';
  return [note(SUBJECT, text, 'the contract asks for https')];
}

const ENDPOINT = /\/(configurations|availability|instances|volumes|auth\/token|docs|openapi\.json)(\/.*)?$/;

/** Other likely base URLs on the same host, likeliest first. */
export function likelyBaseUrls(baseUrl: string): string[] {
  const { origin, pathname } = new URL(baseUrl);
  const path = pathname.replace(/\/+$/, '');
  const candidates = [
    path.replace(/\/{2,}/g, '/'),
    path.replace(ENDPOINT, ''),
    path.replace(/(\/v1)+(?=\/v1$)/, ''),
    `${path.replace(ENDPOINT, '')}/v1`,
    path.replace(/\/v1$/, ''),
    '/v1',
    '/api/v1',
  ];
  const urls = new Set(candidates.map((candidate) => `${origin}${candidate}`));
  urls.delete(baseUrl);
  return [...urls];
}
