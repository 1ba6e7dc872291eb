"""Conversations as text, and templates that do what they must not."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from phlox_text import ChatTemplate, TextError

TALK = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Hi <b>'there'</b> é"},
]
CHATML = """\
{%- if messages[0]['role'] != 'system' %}
    {{- raise_exception('no system') }}
{%- endif %}
{% for message in messages %}
    {%- if loop.index0 > 9 %}{% break %}{% endif %}
{{- '<|im_start|>' + message['role'] + '\n' + message.content | trim + '<|im_end|>\n' -}}
    {% if message.role == 'user' %}
    {% endif %}
{% endfor %}
{% if tools %}{{ tools | tojson(indent=2) }}{% endif %}
{% if add_generation_prompt %}
{{ '<|im_start|>assistant\n' }}{% generation %}{% endgeneration %}
{% endif %}"""


def test_a_conversation_is_written_as_its_template_says() -> None:
    template = ChatTemplate(CHATML, {"eos_token": "</s>"})
    head = "<|im_start|>system\nBe brief.<|im_end|>\n"
    head += "<|im_start|>user\nHi <b>'there'</b> é<|im_end|>\n"
    assert template.render(TALK) == head
    assert template.render(TALK, answer=True) == head + "<|im_start|>assistant\n"
    tools = [{"name": "<é>'"}]
    assert template.render(TALK, tools=tools) == head + json.dumps(
        tools, ensure_ascii=False, indent=2
    )
    assert (
        ChatTemplate("{{ eos_token }}{{ think }}", {"eos_token": "</s>"}).render([], think=1)
        == "</s>1"
    )
    with pytest.raises(TextError, match=r"refuses the conversation: got no system"):
        template.render(TALK[1:])


def test_the_template_of_a_folder_is_found(tmp_path: Path) -> None:
    several = [{"name": "tool_use", "template": "a"}, {"name": "default", "template": "b"}]
    found = ChatTemplate.beside(tmp_path, {"chat_template": several}, {})
    assert found is not None
    assert found.source == "b"
    assert ChatTemplate.beside(tmp_path, {"chat_template": [3]}, {}) is None
    (tmp_path / "chat_template.json").write_text('{"chat_template": "c"}')
    found = ChatTemplate.beside(tmp_path, {"chat_template": several}, {})
    assert found is not None
    assert found.source == "c"


@pytest.mark.parametrize(
    "source",
    [
        "{{ messages.__class__.__mro__ }}",
        "{{ ''.__class__.__base__.__subclasses__() }}",
        "{{ messages.append(1) }}",
        "{{ messages[0].update(role='x') }}",
        "{{ cycler.__init__.__globals__ }}",
        "{% for i in range(10**9) %}{% endfor %}",
        "{{ strftime_now.__globals__['json'] }}",
        "{% include 'secrets' %}",
        "{{ 1 // 0 }}",
        "{{ none + 1 }}",
        "{{ messages | tojson(indent='x', separators=3) }}",
        "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
    ],
)
def test_what_a_template_must_not_do_is_an_error(source: str) -> None:
    talk = [dict(each) for each in TALK]
    with pytest.raises(TextError, match=r"\[chat\] the template"):
        ChatTemplate(source).render(talk)
    assert talk == TALK


def test_what_is_no_template_or_no_message_is_refused() -> None:
    with pytest.raises(TextError, match="the template is none"):
        ChatTemplate("{% for %}")
    wrong: list[Any] = [["hi"], "hi", [{"content": "no role"}]]
    for messages in wrong:
        with pytest.raises(TextError, match="these are no messages"):
            ChatTemplate("").render(messages)


def test_a_template_of_a_file_is_read_when_it_is_used() -> None:
    wrong = ChatTemplate("{% if %}", unread=True)
    with pytest.raises(TextError, match="the template is none"):
        wrong.render([{"role": "user", "content": "Hello"}])


def test_what_conversations_and_options_need_is_loaded_with_them() -> None:
    code = "import sys, phlox_text; print({'jinja2', 'phlox_fusion'} & sys.modules.keys())"
    line = [sys.executable, "-c", code]
    assert subprocess.run(line, check=True, capture_output=True, text=True).stdout == "set()\n"
