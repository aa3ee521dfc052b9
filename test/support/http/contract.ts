import { readFileSync } from 'node:fs';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';

interface Operation {
  responses: Record<string, { content?: Record<string, unknown> }>;
}
interface OpenApiDocument {
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, unknown> };
}

/** Codes below or beside any operation: they may come for every request. */
const ANYWHERE = new Set([404, 405, 408, 413, 431]);

/** What a reply looks like to the checker. */
export interface ObservedReply {
  method: string;
  /** As it was sent, without host and query. */
  path: string;
  status: number;
  contentType: string | null;
  body: string;
}

/** Where a document has an operation. */
export const pointerTo = (method: string, path: string): string =>
  `/paths/${path.replaceAll('~', '~0').replaceAll('/', '~1')}/${method.toLowerCase()}`;

const isLiteral = (path: string): boolean => !path.includes('{');

/** A published document, and what it says of replies. */
export class Contract {
  readonly #document: OpenApiDocument;
  readonly #prefix: string;
  readonly #ajv = new Ajv2020({ strict: false, allErrors: true });
  readonly #routes: { path: string; pattern: RegExp }[];
  readonly #validators = new Map<string, ValidateFunction>();

  constructor(file: string, prefix: string) {
    this.#document = JSON.parse(readFileSync(new URL(`../../../openapi/${file}`, import.meta.url), 'utf8'));
    this.#prefix = prefix;
    addFormats.default(this.#ajv);
    this.#ajv.addSchema({ $id: 'openapi', ...this.#document });
    this.#routes = Object.keys(this.#document.paths).map((path) => ({
      path,
      pattern: new RegExp(`^${path.replace(/\{[^}]+\}/g, '[^/]+')}$`),
    }));
  }

  /** Throws unless the reply is one that the document allows. */
  assertKeeps({ method, path, status, contentType, body }: ObservedReply): void {
    const where = `${method} ${path} → ${status}`;
    if (status === 204 || status === 304) {
      if (body !== '') throw new Error(`${where}: expected no body, got ${body.slice(0, 200)}`);
      return;
    }
    if (!/^application\/json\b/.test(contentType ?? ''))
      throw new Error(`${where}: expected application/json, got ${contentType}`);
    if (method === 'HEAD') return;
    const value: unknown = JSON.parse(body);
    const inside = path.startsWith(this.#prefix) ? path.slice(this.#prefix.length) : path;
    const faults = this.faultsOf(this.#pointerOf(method, inside, status, where), value);
    if (faults) throw new Error(`${where}: ${faults} in ${body.slice(0, 500)}`);
  }

  /** What the schema at a JSON pointer into the document refuses in the value; empty: nothing. */
  faultsOf(pointer: string, value: unknown): string {
    let validate = this.#validators.get(pointer);
    if (validate === undefined) {
      validate = this.#ajv.compile({ $ref: `openapi#${pointer}` });
      this.#validators.set(pointer, validate);
    }
    return validate(value) ? '' : this.#ajv.errorsText(validate.errors);
  }

  #pointerOf(method: string, path: string, status: number, where: string): string {
    const route = this.#routes
      .filter(({ pattern }) => pattern.test(path))
      .sort((a, b) => Number(isLiteral(b.path)) - Number(isLiteral(a.path)))[0]?.path;
    const operation = route === undefined ? undefined : this.#document.paths[route]?.[method.toLowerCase()];
    if (route !== undefined && operation?.responses[status]?.content !== undefined) {
      return `${pointerTo(method, route)}/responses/${status}/content/application~1json/schema`;
    }
    if (operation !== undefined && !ANYWHERE.has(status))
      throw new Error(`${where}: the document has no such status`);
    if (operation === undefined && status < 400)
      throw new Error(`${where}: the document has no such operation`);
    const isLimit = status === 429 && this.#document.components.schemas['RateLimitError'] !== undefined;
    return `/components/schemas/${isLimit ? 'RateLimitError' : 'Error'}`;
  }
}

const orchestrator = new Contract('orchestrator.v1.json', '/v1');
let operator: Contract | undefined;
let marketplace: Contract | undefined;

/** Throws unless an orchestrator may reply so (every reply of every test goes through it). */
export function assertKeepsContract(reply: ObservedReply): void {
  orchestrator.assertKeeps(reply);
}

/** Throws unless the operator's API may reply so. */
export function assertKeepsOperatorContract(reply: ObservedReply): void {
  operator ??= new Contract('operator.v1.json', '/operator/v1');
  operator.assertKeeps(reply);
}

/** Throws unless a marketplace may reply so. */
export function assertKeepsMarketplaceContract(reply: ObservedReply): void {
  marketplace ??= new Contract('marketplace.json', '');
  marketplace.assertKeeps(reply);
}
