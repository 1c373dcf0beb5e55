"""Read a Godot 3 character script without running it: does it keep to its body's own motion, and nothing else?

A script that passes can move the body by physics only, and can reach neither the tree, nor files, nor the engine, nor
what the body's place is: every name in it is a word of the language, a name on the lists below, or one that it declares
itself, and it cannot declare a name that the body already has. Standard library only and no import of ours: the source
is also a tool for whoever writes the script.
"""

import re


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


LONGEST = 65536
"""Characters of a script."""
ACTIONS = frozenset({"move_left", "move_right", "move_down", "jump"})
"""The only strings."""
BASE = "KinematicBody2D"

WORDS = _words("""
    var const func enum static export onready return if elif else for while match break continue pass in is as and or
    not true false null self extends void bool int float
""")
LISTED = _words("""
    KinematicBody2D KinematicCollision2D Vector2 Array Dictionary Input PI TAU INF NAN ZERO ONE UP DOWN LEFT RIGHT
    _ready _init _physics_process delta x y origin
    is_action_pressed is_action_just_pressed is_action_just_released get_action_strength
    move_and_slide move_and_slide_with_snap move_and_collide test_move is_on_floor is_on_wall is_on_ceiling
    get_floor_normal get_floor_velocity get_slide_count get_slide_collision get_global_transform
    set_collision_mask_bit get_collision_mask_bit get_collision_layer_bit
    collider normal remainder travel collider_velocity
    abs acos asin atan atan2 ceil clamp cos deg2rad ease exp floor fmod fposmod inverse_lerp is_equal_approx is_inf
    is_nan is_zero_approx lerp log max min move_toward posmod pow rad2deg range range_lerp round sign sin smoothstep
    sqrt step stepify tan wrapf wrapi len assert
    angle angle_to aspect bounce clamped cross dot length length_squared linear_interpolate normalized project reflect
    rotated slide tangent
    append back clear empty erase front has insert invert keys pop_back pop_front push_back push_front remove resize
    size sort values
""")
"""Functions, classes and members that a script may use."""

NATIVE = _words("""
    _direct_state_changed _draw _enter_tree _exit_tree _get _get_configuration_warning _get_editor_description
    _get_import_path _get_layers _get_property_list _import_path _input _input_event _is_on_top _notification
    _process _set _set_editor_description _set_import_path _set_layers _set_on_top _to_string _toplevel_raise_self
    _unhandled_input _unhandled_key_input _update_callback add_child add_child_below_node
    add_collision_exception_with add_to_group add_user_signal apply_scale call call_deferred callv can_process
    can_translate_messages collision_layer collision_mask connect create_shape_owner custom_multiplayer disconnect
    draw draw_arc draw_char draw_circle draw_colored_polygon draw_line draw_mesh draw_multiline
    draw_multiline_colors draw_multimesh draw_polygon draw_polyline draw_polyline_colors draw_primitive draw_rect
    draw_set_transform draw_set_transform_matrix draw_string draw_style_box draw_texture draw_texture_rect
    draw_texture_rect_region duplicate editor_description emit_signal filename find_node find_parent
    force_update_transform free get get_angle_to get_canvas get_canvas_item get_canvas_transform get_child
    get_child_count get_children get_class get_collision_exceptions get_collision_layer get_collision_layer_bit
    get_collision_mask get_collision_mask_bit get_custom_multiplayer get_filename get_floor_normal
    get_floor_velocity get_global_mouse_position get_global_position get_global_rotation get_global_rotation_degrees
    get_global_scale get_global_transform get_global_transform_with_canvas get_groups get_incoming_connections
    get_index get_indexed get_instance_id get_light_mask get_local_mouse_position get_material get_meta
    get_meta_list get_method_list get_modulate get_multiplayer get_name get_network_master get_node
    get_node_and_resource get_node_or_null get_owner get_parent get_path get_path_to get_pause_mode
    get_physics_process_delta_time get_position get_position_in_parent get_process_delta_time get_process_priority
    get_property_list get_relative_transform_to_parent get_rid get_rotation get_rotation_degrees get_safe_margin
    get_scale get_scene_instance_load_placeholder get_script get_self_modulate
    get_shape_owner_one_way_collision_margin get_shape_owners get_signal_connection_list get_signal_list
    get_slide_collision get_slide_count get_transform get_tree get_use_parent_material get_viewport
    get_viewport_rect get_viewport_transform get_world_2d get_z_index global_position global_rotation
    global_rotation_degrees global_scale global_transform global_translate has_meta has_method has_node
    has_node_and_resource has_signal has_user_signal hide input_event input_pickable is_a_parent_of
    is_blocking_signals is_class is_connected is_displayed_folded is_draw_behind_parent_enabled is_greater_than
    is_in_group is_inside_tree is_local_transform_notification_enabled is_network_master is_on_ceiling is_on_floor
    is_on_wall is_physics_processing is_physics_processing_internal is_pickable is_processing is_processing_input
    is_processing_internal is_processing_unhandled_input is_processing_unhandled_key_input is_queued_for_deletion
    is_set_as_toplevel is_shape_owner_disabled is_shape_owner_one_way_collision_enabled is_sync_to_physics_enabled
    is_transform_notification_enabled is_visible is_visible_in_tree is_z_relative item_rect_changed layers
    light_mask look_at make_canvas_position_local make_input_local material modulate mouse_entered mouse_exited
    move_and_collide move_and_slide move_and_slide_with_snap move_child move_local_x move_local_y multiplayer name
    notification owner pause_mode position print_stray_nodes print_tree print_tree_pretty process_priority
    propagate_call propagate_notification property_list_changed_notify queue_free ready remove_and_skip remove_child
    remove_collision_exception_with remove_from_group remove_meta remove_shape_owner renamed replace_by
    request_ready rotate rotation rotation_degrees rpc rpc_config rpc_id rpc_unreliable rpc_unreliable_id rset
    rset_config rset_id rset_unreliable rset_unreliable_id scale script script_changed self_modulate set
    set_as_toplevel set_block_signals set_collision_layer set_collision_layer_bit set_collision_mask
    set_collision_mask_bit set_custom_multiplayer set_deferred set_display_folded set_draw_behind_parent
    set_filename set_global_position set_global_rotation set_global_rotation_degrees set_global_scale
    set_global_transform set_indexed set_light_mask set_material set_message_translation set_meta set_modulate
    set_name set_network_master set_notify_local_transform set_notify_transform set_owner set_pause_mode
    set_physics_process set_physics_process_internal set_pickable set_position set_process set_process_input
    set_process_internal set_process_priority set_process_unhandled_input set_process_unhandled_key_input
    set_rotation set_rotation_degrees set_safe_margin set_scale set_scene_instance_load_placeholder set_script
    set_self_modulate set_sync_to_physics set_transform set_use_parent_material set_visible set_z_as_relative
    set_z_index shape_find_owner shape_owner_add_shape shape_owner_clear_shapes shape_owner_get_owner
    shape_owner_get_shape shape_owner_get_shape_count shape_owner_get_shape_index shape_owner_get_transform
    shape_owner_remove_shape shape_owner_set_disabled shape_owner_set_one_way_collision
    shape_owner_set_one_way_collision_margin shape_owner_set_transform show show_behind_parent show_on_top test_move
    to_global to_local to_string tr transform translate tree_entered tree_exited tree_exiting update
    update_configuration_warning use_parent_material visibility_changed visible z_as_relative z_index
""")
"""What a KinematicBody2D already has; a script that declares one of these would hide what it does."""
_NO_CONSTANTS = frozenset({"OS", "IP", "JSON", "JSONRPC", "UPNP"})

_TOKEN = re.compile(
    r"""
    (?P<comment>\#[^\n]*)
    | (?P<string>\"\"\"[\s\S]*?\"\"\"|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
    | (?P<number>0[xX][0-9a-fA-F_]+|0[bB][01_]+|(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)
    | (?P<name>[A-Za-z_]\w*)
    | (?P<line>\n)
    | (?P<space>[ \t\r\f]+|\\\r?\n)
    | (?P<sign>:=|->|&&|\|\||<<|>>|[-+*/%=!<>&|^~.,:;()\[\]{}])
    """,
    re.VERBOSE | re.ASCII,
)
_DECLARES = frozenset({"var", "const", "func", "for", "enum"})


def problems(source: str) -> list[str]:
    """What `source` may not contain, as `line N: what`, in the order of the lines; empty for a script that may run."""
    if len(source) > LONGEST:
        return [f"the script has {len(source)} characters, at most {LONGEST} are read"]
    tokens: list[tuple[str, str, int]] = []
    at, line = 0, 1
    while at < len(source):
        match = _TOKEN.match(source, at)
        if match is None:
            return [f"line {line}: {source[at]!r} is not allowed"]
        kind, text = match.lastgroup or "", match.group()
        if kind not in ("comment", "space", "line"):
            tokens.append((kind, text, line))
        line += text.count("\n")
        at = match.end()
    if [text for _, text, _ in tokens[:2]] != ["extends", BASE]:
        return [f"line 1: the script must begin with extends {BASE}"]
    return _wrong(tokens)


def _wrong(tokens: list[tuple[str, str, int]]) -> list[str]:
    declared, found = set[str](), list[str]()
    for name, line in _declared(tokens):
        if name in NATIVE:
            found.append(f"line {line}: the name {name} is taken")
        elif name[0].isupper() and (name in _NO_CONSTANTS or not name.isupper()):
            found.append(f"line {line}: {name}: a name in capitals is a constant, in CAPITALS throughout")
        declared.add(name)
    for index, (kind, text, line) in enumerate(tokens):
        if kind == "string" and text[1:-1] not in ACTIONS:
            found.append(f"line {line}: the string {text[:40]}; the only strings are the actions {sorted(ACTIONS)}")
        elif kind == "name" and text == "self" and (index + 1 == len(tokens) or tokens[index + 1][1] != "."):
            found.append(f"line {line}: self alone")
        elif kind == "name" and text == "extends" and index > 0:
            found.append(f"line {line}: a second extends")
        elif kind == "name" and text not in WORDS and text not in LISTED and text not in declared:
            found.append(f"line {line}: {text} is not allowed")
    return sorted(set(found), key=lambda words: int(re.findall(r"\d+", words)[0]))


def _declared(tokens: list[tuple[str, str, int]]) -> list[tuple[str, int]]:
    """The names that the script introduces: variables, constants, functions and their parameters, enums."""
    found: list[tuple[str, int]] = []
    for index, (kind, text, _) in enumerate(tokens):
        if kind != "name" or text not in _DECLARES or index + 1 >= len(tokens):
            continue
        if tokens[index + 1][0] == "name":
            found.append((tokens[index + 1][1], tokens[index + 1][2]))
        if text in ("func", "enum"):
            found += _listed(tokens, index + 1, "(" if text == "func" else "{")
    return found


def _listed(tokens: list[tuple[str, str, int]], at: int, opening: str) -> list[tuple[str, int]]:
    """The names that stand first in the comma-separated list behind `at`, in brackets of one level."""
    while at < len(tokens) and tokens[at][1] != opening:
        at += 1
    found: list[tuple[str, int]] = []
    depth = 0
    for before, (kind, text, line) in zip(tokens[at:], tokens[at + 1 :], strict=False):
        depth += (before[1] in "([{") - (before[1] in ")]}")
        if depth == 0:
            break
        if depth == 1 and before[1] in (opening, ",") and kind == "name":
            found.append((text, line))
    return found
