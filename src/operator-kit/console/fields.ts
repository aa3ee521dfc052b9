import { z } from 'zod';
import { titleOf } from '../columns.ts';
import { kindOf } from '../operation.ts';
import { type Html, html } from './parts.ts';

/** A value of a menu or a suggestion, and its text. */
export type Choice = readonly [value: string, text: string];

/** A field for an input of an action. */
export function fieldOf(
  id: string,
  name: string,
  schema: z.ZodType,
  value = '',
  choices: readonly Choice[],
): Html | '' {
  const title = titleOf({ field: name });
  const isRequired = !schema.safeParse(undefined).success;
  const inner = schema instanceof z.ZodOptional || schema instanceof z.ZodDefault ? schema.unwrap() : schema;
  const shown = value || (schema instanceof z.ZodDefault ? String(schema.parse(undefined)) : '');
  if (inner instanceof z.ZodEnum)
    return html`<label class="field"><span>${title}</span><select name="${name}">${isRequired || shown !== '' ? '' : html`<option></option>`}${inner.options.map(
      (one) => (one === shown ? html`<option selected>${one}</option>` : html`<option>${one}</option>`),
    )}</select></label>`;
  const kind = kindOf(name, schema);
  // Without a choice the default of the action applies, which may be on.
  if (kind === 'switch' && schema instanceof z.ZodOptional)
    return html`<label class="field"><span>${title}</span><select name="${name}"><option value="">default</option>${[
      'yes',
      'no',
    ].map((one) => html`<option ${one === value ? 'selected' : ''}>${one}</option>`)}</select></label>`;
  if (kind === 'switch')
    return html`<label><input type="checkbox" name="${name}" value="yes"> ${title}</label>`;
  const hint = kind === 'time' ? '30m, 2h, 7d or a time' : '';
  return html`<label class="field grow"><span>${title}</span><input name="${name}" value="${value}" placeholder="${hint}" list="${id}" ${isRequired ? 'required' : ''}></label>${
    choices.length === 0
      ? ''
      : html`<datalist id="${id}">${choices.map(([one, text]) => html`<option value="${one}">${text === one ? '' : text}</option>`)}</datalist>`
  }`;
}
