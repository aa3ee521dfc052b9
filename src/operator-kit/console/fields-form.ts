import { z } from 'zod';
import { titleOf } from '../columns.ts';
import { kindOf, type Operation, splitInput } from '../operation.ts';
import { actionPath } from './action-pages.ts';
import type { PageRequest } from './deps.ts';
import { csrfField } from './layout.ts';
import { type Html, html } from './parts.ts';

/** A value of a menu or a suggestion, and its text. */
export type Choice = readonly [value: string, text: string];

/**
 * A form with a field for each input of the action. Its button leads to the page that shows what would happen, or does
 * it where there is no such page. `choices`: suggestions by the name of the field.
 */
export function fieldsForm<Deps>(
  action: Operation<Deps>,
  { query, session }: PageRequest,
  choices: Readonly<Record<string, readonly Choice[]>>,
): Html {
  const { params, rest } = splitInput(action);
  const { dry_run: _, ...fields } = { ...params, ...rest };
  const { name, form, summary, description } = action;
  const isPlanned = (action.dryRun ?? form?.preview) !== undefined;
  return html`<form class="card" id="${name}" method="${isPlanned ? 'get' : 'post'}" action="/console${actionPath(name)}">
<h2>${summary}</h2><p class="soft small">${description}</p>${isPlanned ? '' : csrfField(session.csrf)}
<div class="row">${Object.entries(fields).map(([field, schema]) =>
    fieldOf(`${name}-${field}`, field, schema, query(field), choices[field] ?? []),
  )}<button class="primary">${form?.button}${isPlanned ? ' …' : ''}</button></div></form>`;
}

function fieldOf(
  id: string,
  name: string,
  schema: z.ZodType,
  value = '',
  choices: readonly Choice[],
): Html | '' {
  const title = titleOf({ field: name });
  const isRequired = !schema.safeParse(undefined).success;
  const inner = schema instanceof z.ZodOptional || schema instanceof z.ZodDefault ? schema.unwrap() : schema;
  if (inner instanceof z.ZodEnum)
    return html`<label class="field"><span>${title}</span><select name="${name}">${isRequired ? '' : html`<option></option>`}${inner.options.map(
      (one) => (one === value ? html`<option selected>${one}</option>` : html`<option>${one}</option>`),
    )}</select></label>`;
  const kind = kindOf(name, schema);
  if (kind === 'switch')
    return html`<label><input type="checkbox" name="${name}" value="yes"> ${title}</label>`;
  const hint = kind === 'time' ? '30m, 2h, 7d or a time' : '';
  return html`<label class="field grow"><span>${title}</span><input name="${name}" value="${value}" placeholder="${hint}" list="${id}" ${isRequired ? 'required' : ''}></label>${
    choices.length === 0
      ? ''
      : html`<datalist id="${id}">${choices.map(([one, text]) => html`<option value="${one}">${text === one ? '' : text}</option>`)}</datalist>`
  }`;
}
