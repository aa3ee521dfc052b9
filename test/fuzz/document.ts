import { readFileSync } from 'node:fs';
import { Contract } from '../support/http/contract.ts';

export interface Schema {
  $ref?: string;
  type?: string | string[];
  enum?: unknown[];
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  anyOf?: Schema[];
  minimum?: number;
  maximum?: number;
  exclusiveMinimum?: number;
  minLength?: number;
  maxLength?: number;
  minItems?: number;
  maxItems?: number;
  pattern?: string;
  format?: string;
}

export interface Parameter {
  name: string;
  in: 'path' | 'query' | 'header';
  required?: boolean;
  schema: Schema;
}

/** An operation of a published document. */
export interface Operation {
  id: string;
  method: string;
  /** As in the document, such as `/instances/{instanceId}`. */
  path: string;
  parameters: readonly Parameter[];
  body: Schema | undefined;
  isPublic: boolean;
  /** By status. */
  responses: Readonly<Record<string, { description: string }>>;
}

interface Components {
  schemas: Record<string, Schema>;
}

interface Item {
  operationId?: string;
  parameters?: Parameter[];
  requestBody?: { content: Record<string, { schema: Schema }> };
  responses: Operation['responses'];
  security?: object[];
}

/** A published document as its clients read it. */
export class Document {
  readonly contract: Contract;
  readonly operations: readonly Operation[];
  readonly #schemas: Record<string, Schema>;

  /** `prefix`: of its paths, on the server. */
  constructor(name: string, prefix: string) {
    this.contract = new Contract(`${name}.json`, prefix);
    const text = readFileSync(new URL(`../../openapi/${name}.json`, import.meta.url), 'utf8');
    const { paths, components }: { paths: Record<string, Record<string, Item>>; components: Components } =
      JSON.parse(text);
    this.#schemas = components.schemas;
    this.operations = Object.entries(paths).flatMap(([path, items]) =>
      Object.entries(items).map(([method, item]) => ({
        id: item.operationId ?? '',
        method: method.toUpperCase(),
        path,
        parameters: item.parameters ?? [],
        body: item.requestBody?.content['application/json']?.schema,
        isPublic: item.security?.length === 0 || JSON.stringify(item.security).includes('{}'),
        responses: item.responses,
      })),
    );
  }

  /** The schema that a `$ref` names, or the schema itself. */
  resolve(schema: Schema): Schema {
    const name = schema.$ref?.split('/').at(-1);
    return name === undefined ? schema : this.resolve(this.#schemas[name] ?? {});
  }
}
