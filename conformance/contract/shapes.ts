import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js';
import { isObject, type JsonObject } from '../text/json.ts';
import { shortJson } from '../text/wording.ts';
import { readPackageJson } from './package.ts';

/** The objects that the contract describes with a table of fields. */
export type ShapeName = 'Configuration' | 'Instance' | 'Volume' | 'VolumeLocation';

/** One way in which an object breaks its table of fields. */
export interface ShapeProblem {
  /** The top-level field with the problem. Empty if the value is not an object. */
  field: string;
  /** The path inside the object, e.g. `port_forwards[0].internal_port`. */
  path: string;
  /** In words, e.g. `is missing`. */
  problem: string;
  /** `value`: the right type, but not one of the allowed values. `null`: an optional top-level field that is null. */
  fault: 'missing' | 'type' | 'value' | 'null';
  /** Whether the table says that `field` is required. */
  isRequired: boolean;
}

const MOST_PROBLEMS = 20;

/**
 * The schema keywords in the contract's tables. All others (such as the pattern of a region) are Berth's own and do not
 * bind other orchestrators. `format` is left out: RFC 3339 timestamps are a separate requirement.
 */
const KEPT = new Set(['$ref', 'type', 'required', 'properties', 'items', 'enum']);

const schemas = schemasOf(readPackageJson('openapi/orchestrator.v1.json'));
const ajv = new Ajv2020({ strict: false, allErrors: true, verbose: true });
ajv.addSchema({ $id: 'contract', components: { schemas: mapValues(schemas, (schema) => trim(schema)) } });
const validators = new Map<ShapeName, ValidateFunction>();

/** Validates an object against its table in the contract. Additional fields are allowed. */
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

/** Reduces a schema to the kept keywords; of the length limits only "an id is not empty" stays. */
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
