import { expect, it } from 'vitest';
import { ApiError, type ErrorCode, errorBodySchema, errorTable, invalidRequest } from './errors.ts';

it.each(Object.keys(errorTable) as ErrorCode[])('has the envelope for %s', (code) => {
  const body = new ApiError(code, 'why', { details: { a: 1 } }).toBody();
  expect(errorBodySchema.parse(body)).toEqual({ error: { code, message: 'why', details: { a: 1 } } });
  expect(new ApiError(code, 'why').toBody()).toEqual({ error: { code, message: 'why' } });
});

it('names every issue of a bad request in its message and in its details', () => {
  const issues = [
    { path: 'a[0]', message: 'expected a string' },
    { path: '', message: 'expected an object' },
  ];
  expect(invalidRequest(issues).toBody().error).toEqual({
    code: 'invalid_request',
    message: 'a[0]: expected a string; expected an object',
    details: { issues },
  });
});
