import { z } from 'zod';

/**
 * Reads null in an optional field as absent, at every depth that the schema names. O: and M: do not mention null, which
 * many frameworks write where there is no value. Free-form objects and unknown fields keep theirs, and so does the field
 * `except`.
 */
export function nullAsAbsent<S extends z.ZodObject>(schema: S, except?: keyof S['shape'] & string) {
  return z.preprocess((value) => withoutNulls(schema, value, except), schema);
}

function withoutNulls(schema: z.core.$ZodType, value: unknown, except?: string): unknown {
  if (schema instanceof z.ZodOptional) return withoutNulls(schema.unwrap(), value);
  if (schema instanceof z.ZodArray && Array.isArray(value))
    return value.map((element) => withoutNulls(schema.element, element));
  if (!(schema instanceof z.ZodObject) || typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value;
  const shape = new Map<string, z.core.$ZodType>(Object.entries(schema.shape));
  const fields = Object.entries(value).flatMap(([name, field]) => {
    const part = shape.get(name);
    if (part === undefined) return [[name, field]];
    const isLeft = field === null && part instanceof z.ZodOptional && name !== except;
    return isLeft ? [] : [[name, withoutNulls(part, field)]];
  });
  return Object.fromEntries(fields);
}
