import { readFileSync } from 'node:fs';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';

interface Operation {
  responses: Record<string, { content?: Record<string, unknown> }>;
}
interface OpenApiDocument {
  paths: Record<string, Record<string, Operation>>;
}

const document: OpenApiDocument = JSON.parse(
  readFileSync(new URL('../../openapi/orchestrator.v1.json', import.meta.url), 'utf8'),
);
const ajv = new Ajv2020({ strict: false, allErrors: true });
addFormats.default(ajv);
ajv.addSchema({ $id: 'openapi', ...document });

const routes = Object.keys(document.paths).map((path) => ({
  path,
  pattern: new RegExp(`^${path.replace(/\{[^}]+\}/g, '[^/]+')}$`),
}));
const isLiteral = (path: string): boolean => !path.includes('{');

/** Codes below or beside any operation: they may come for every request. */
const ANYWHERE = new Set([404, 405, 408, 413, 431]);
const validators = new Map<string, ValidateFunction>();

function validator(pointer: string): ValidateFunction {
  const known = validators.get(pointer);
  if (known !== undefined) return known;
  const made = ajv.compile({ $ref: `openapi#${pointer}` });
  validators.set(pointer, made);
  return made;
}

/** What a reply of /v1 looks like to the checker. */
export interface ObservedReply {
  method: string;
  /** With /v1, without host and query. */
  path: string;
  status: number;
  contentType: string | null;
  body: string;
}

/** Throws unless the reply is one that the published document allows (every reply of every test goes through it). */
export function assertKeepsContract({ method, path, status, contentType, body }: ObservedReply): void {
  const where = `${method} ${path} → ${status}`;
  if (status === 204 || status === 304) {
    if (body !== '') throw new Error(`${where}: expected no body, got ${body.slice(0, 200)}`);
    return;
  }
  if (!/^application\/json\b/.test(contentType ?? ''))
    throw new Error(`${where}: expected application/json, got ${contentType}`);
  if (method === 'HEAD') return;
  const value: unknown = JSON.parse(body);
  const pointer = pointerOf(method, path.replace(/^\/v1/, ''), status, where);
  const validate = validator(pointer);
  if (!validate(value))
    throw new Error(`${where}: ${ajv.errorsText(validate.errors)} in ${body.slice(0, 500)}`);
}

function pointerOf(method: string, path: string, status: number, where: string): string {
  const route = routes
    .filter(({ pattern }) => pattern.test(path))
    .sort((a, b) => Number(isLiteral(b.path)) - Number(isLiteral(a.path)))[0]?.path;
  const operation = route === undefined ? undefined : document.paths[route]?.[method.toLowerCase()];
  if (route !== undefined && operation?.responses[status]?.content !== undefined) {
    const escaped = route.replaceAll('~', '~0').replaceAll('/', '~1');
    return `/paths/${escaped}/${method.toLowerCase()}/responses/${status}/content/application~1json/schema`;
  }
  if (operation !== undefined && !ANYWHERE.has(status))
    throw new Error(`${where}: the document has no such status`);
  if (operation === undefined && status < 400)
    throw new Error(`${where}: the document has no such operation`);
  return '/components/schemas/Error';
}
