import { z } from 'zod';
import * as one from './version-1.ts';
import * as two from './version-2.ts';

/** A version of the protocol as JSON Schema 2020-12, for authors of drivers. */
export function protocolJsonSchema(version: 1 | 2): object {
  const shared: Record<string, unknown> = {};
  const toSchema = (schema: z.ZodType): object => {
    const { $schema: _dialect, $defs = {}, ...json } = z.toJSONSchema(schema, { io: 'input' });
    Object.assign(shared, $defs);
    return json;
  };
  const {
    requests,
    results,
  }: Record<'requests' | 'results', Record<string, z.ZodType>> = version === 1 ? one : two;
  const schemas = Object.fromEntries(
    Object.entries(requests).flatMap(([method, request]) => {
      const result = results[method] as z.ZodType;
      const answer = z.union([z.object({ id: one.id, result }), z.object({ id: one.id, error: one.text })]);
      return [
        [`${method}.request`, toSchema(request)],
        [`${method}.answer`, toSchema(answer)],
      ];
    }),
  );
  if (version !== 1) schemas['cancel.notification'] = toSchema(two.cancel);
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    $id: `https://berth.invalid/driver-protocol.v${version}.json`,
    title: `Berth driver protocol, version ${version}`,
    description:
      'One JSON object a line: Berth writes requests to the standard input of the driver, which writes answers to its standard output in any order. Over HTTP each request is the body of a POST, and its answer is the body of the 200 response. $defs has a schema for the parameters and the result of each method.',
    oneOf: Object.keys(schemas).map((name) => ({ $ref: `#/$defs/${name}` })),
    $defs: { ...schemas, ...shared },
  };
}
