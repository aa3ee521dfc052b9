import { z } from 'zod';
import { cancel, id, type Method, requests, results } from './messages.ts';
import { text } from './objects.ts';

/** The protocol as JSON Schema 2020-12, for authors of drivers. */
export function protocolJsonSchema(): object {
  const shared: Record<string, unknown> = {};
  const toSchema = (schema: z.ZodType): object => {
    const { $schema: _dialect, $defs = {}, ...json } = z.toJSONSchema(schema, { io: 'input' });
    Object.assign(shared, $defs);
    return json;
  };
  const schemas = Object.fromEntries(
    Object.entries(requests).flatMap(([method, request]) => {
      const result = results[method as Method];
      const answer = z.union([z.object({ id, result }), z.object({ id, error: text })]);
      return [
        [`${method}.request`, toSchema(request)],
        [`${method}.answer`, toSchema(answer)],
      ];
    }),
  );
  schemas['cancel.notification'] = toSchema(cancel);
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    $id: 'https://berth.invalid/driver-protocol.json',
    title: 'Berth driver protocol',
    description:
      'One JSON object a line: Berth writes requests to the standard input of the driver, which writes answers to its standard output in any order. Over HTTP each request is the body of a POST, and its answer is the body of the 200 response. $defs has a schema for the parameters and the result of each method.',
    oneOf: Object.keys(schemas).map((name) => ({ $ref: `#/$defs/${name}` })),
    $defs: { ...schemas, ...shared },
  };
}
