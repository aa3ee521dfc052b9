import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js';
import { isObject, type JsonObject } from '../text/json.ts';
import { shortJson } from '../text/wording.ts';
import { readPackageJson } from './package.ts';

/** The objects whose fields O: has tables of. */
export type ShapeName = 'Configuration' | 'Instance' | 'Volume' | 'VolumeLocation';

/** One thing in an object that its table does not allow. */
export interface ShapeProblem {
  /** The field of the object in which it is; empty where the object itself is none. */
  field: string;
  /** Where in the object, e.g. `port_forwards[0].internal_port`. */
  path: string;
  /** In words, e.g. `is missing`. */
  problem: string;
  /**
   * `value`: of the right type, and not one of the values that the table names. `null`: an optional field of the object
   * itself that is null.
   */
  fault: 'missing' | 'type' | 'value' | 'null';
  /** Whether the table says that `field` is required. */
  isRequired: boolean;
}

const MOST_PROBLEMS = 20;

/**
 * The keywords that stand in the tables of O:. The others of the document, such as the pattern of a region, are our own
 * and no business of another's orchestrator. `format` is not here: whether timestamps are RFC 3339 is a sentence of its own.
 */
const KEPT = new Set(['$ref', 'type', 'required', 'properties', 'items', 'enum']);

const schemas = schemasOf(readPackageJson('openapi/orchestrator.v1.json'));
const ajv = new Ajv2020({ strict: false, allErrors: true, verbose: true });
ajv.addSchema({ $id: 'contract', components: { schemas: mapValues(schemas, (schema) => trim(schema)) } });
const validators = new Map<ShapeName, ValidateFunction>();

/** What is wrong with an object, by the table of O: that it has to follow. Fields beside those of the table are lawful. */
export function shapeProblems(name: ShapeName, value: unknown): ShapeProblem[] {
  const validate = validatorOf(name);
  if (validate(value)) return [];
  const required = requiredOf(name);
  return (validate.errors ?? []).slice(0, MOST_PROBLEMS).map((error) => toProblem(error, required));
}

function validatorOf(name: ShapeName): ValidateFunction {
  const validate = validators.get(name) ?? ajv.compile({ $ref: `contract#/components/schemas/${name}` });
  validators.set(name, validate);
  return validate;
}

function requiredOf(name: ShapeName): ReadonlySet<unknown> {
  const required = schemas[name]?.['required'];
  return new Set(Array.isArray(required) ? required : []);
}

function toProblem(error: ErrorObject, required: ReadonlySet<unknown>): ShapeProblem {
  const parent = error.instancePath.split('/').slice(1);
  const missing = error.keyword === 'required' ? [String(error.params['missingProperty'])] : [];
  const [field = '', ...below] = [...parent, ...missing];
  const isRequired = field === '' || required.has(field);
  const isNull = error.data === null && below.length === 0 && !isRequired;
  return {
    field,
    path: [field, ...below.map((part) => (/^\d+$/.test(part) ? `[${part}]` : `.${part}`))].join(''),
    problem: wordsOf(error),
    fault: isNull ? 'null' : faultOf(error),
    isRequired,
  };
}

function faultOf({ keyword }: ErrorObject): ShapeProblem['fault'] {
  if (keyword === 'required') return 'missing';
  return keyword === 'enum' ? 'value' : 'type';
}

function wordsOf({ keyword, params, data }: ErrorObject): string {
  if (keyword === 'required') return 'is missing';
  if (keyword === 'enum') return `is ${shortJson(data)}, not one of ${params['allowedValues'].join(', ')}`;
  if (keyword === 'minLength') return 'is empty';
  return `is ${shortJson(data)}, not ${/^[aeiou]/.test(params['type']) ? 'an' : 'a'} ${params['type']}`;
}

function schemasOf(document: unknown): Readonly<Record<string, JsonObject>> {
  const components = isObject(document) ? document['components'] : undefined;
  const found = isObject(components) ? components['schemas'] : undefined;
  if (!isObject(found)) throw new Error('openapi/orchestrator.v1.json has no schemas');
  return Object.fromEntries(
    Object.entries(found).filter((entry): entry is [string, JsonObject] => isObject(entry[1])),
  );
}

/** A schema with the kept keywords only; of lengths it keeps that an id is not empty. */
function trim(schema: unknown, field = ''): unknown {
  if (!isObject(schema)) return schema;
  const kept = Object.entries(schema).filter(
    ([keyword]) => KEPT.has(keyword) || (keyword === 'minLength' && /(^|_)id$/.test(field)),
  );
  return Object.fromEntries(kept.map(([keyword, value]) => [keyword, trimValue(keyword, value)]));
}

function trimValue(keyword: string, value: unknown): unknown {
  if (keyword === 'properties' && isObject(value)) return mapValues(value, trim);
  if (keyword === 'items') return trim(value);
  return keyword === '$ref' ? String(value).replace(/^#/, 'contract#') : value;
}

function mapValues(
  object: JsonObject,
  map: (value: unknown, name: string) => unknown,
): Record<string, unknown> {
  return Object.fromEntries(Object.entries(object).map(([name, value]) => [name, map(value, name)]));
}
